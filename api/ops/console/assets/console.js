// The console in a browser: pages refresh themselves in place, plots are drawn, ticks are counted. Without it all works too.

const find = (selector) => document.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];

// ---- Refreshing in place: the new page is laid over the old one, so that focus, fields and open parts stay.

const keyOf = (node) => (node.nodeType === 1 ? node.id || node.dataset.key || '' : '');
const alike = (a, b) => a.nodeName === b.nodeName && keyOf(a) === keyOf(b);
/** What people may have changed since the page was made. */
const kept = (node, name) =>
  (name === 'open' && node.nodeName === 'DETAILS') || name === 'value' || name === 'checked';

const layAttributes = (old, fresh) => {
  for (const { name, value } of fresh.attributes) {
    if (!kept(old, name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    if (!kept(old, name) && !fresh.hasAttribute(name)) old.removeAttribute(name);
  }
};

const layChildren = (old, fresh) => {
  const named = new Map([...old.childNodes].filter(keyOf).map((node) => [keyOf(node), node]));
  let at = old.firstChild;
  for (const next of [...fresh.childNodes]) {
    const known = keyOf(next) ? named.get(keyOf(next)) : at;
    if (known && alike(known, next)) {
      if (known === at) at = at.nextSibling;
      else old.insertBefore(known, at);
      lay(known, next);
    } else {
      old.insertBefore(document.importNode(next, true), at);
    }
  }
  while (at) {
    const gone = at;
    at = at.nextSibling;
    gone.remove();
  }
};

const lay = (old, fresh) => {
  if (old.nodeType !== 1) {
    if (old.data !== fresh.data) old.data = fresh.data;
  } else if (!old.hasAttribute('data-keep') && !old.isEqualNode(fresh)) {
    layAttributes(old, fresh);
    layChildren(old, fresh);
  }
};

const layPage = (text) => {
  const page = new DOMParser().parseFromString(text, 'text/html');
  for (const old of all('[data-live]')) {
    const fresh = page.getElementById(old.id);
    if (fresh) lay(old, fresh);
  }
  if (page.body.dataset.every) document.body.dataset.every = page.body.dataset.every;
  countTicks();
};

// ---- Asking for what is new, as often as the page says, while somebody looks.

const button = find('#live');
const heard = find('#heard');
let timer;
let lostAt;

const everyMs = () => Number(document.body.dataset.every) * 1000;
const isLive = () => sessionStorage.getItem('live') !== 'no';

const tell = (text) => {
  if (heard.textContent !== text) heard.textContent = text;
  heard.classList.toggle('lost', lostAt !== undefined);
};

const showLive = () => {
  button.setAttribute('aria-pressed', String(isLive()));
  button.textContent = isLive() ? 'Live' : 'Still';
  button.toggleAttribute('data-lost', lostAt !== undefined);
  button.title = isLive()
    ? 'The page refreshes itself. Press to hold it still.'
    : 'Press to refresh.';
};

const listen = async () => {
  try {
    const answer = await fetch(location.href, {
      headers: { Accept: 'text/html', 'X-Live': '1' },
      signal: AbortSignal.timeout(10_000),
    });
    if (answer.status === 401) return location.reload();
    const text = await answer.text();
    if (isLive()) layPage(text);
    lostAt = undefined;
    tell('');
  } catch {
    lostAt ??= new Date().toISOString().slice(11, 19);
    tell(`No answer since ${lostAt}`);
  }
  showLive();
  later();
};

const later = () => {
  clearTimeout(timer);
  if (everyMs() > 0 && isLive() && !document.hidden) timer = setTimeout(listen, everyMs());
};

const startListening = () => {
  if (everyMs() === 0) return;
  button.hidden = false;
  button.addEventListener('click', () => {
    sessionStorage.setItem('live', isLive() ? 'no' : 'yes');
    showLive();
    if (isLive()) void listen();
  });
  document.addEventListener('visibilitychange', () =>
    document.hidden ? later() : isLive() && listen(),
  );
  showLive();
  later();
};

// ---- Lists with ticks: all at once, and how many.

const countTicks = () => {
  for (const form of all('form[data-ticks]')) {
    const ticks = all('tbody input[type=checkbox]', form);
    const ticked = ticks.filter(({ checked }) => checked).length;
    const head = form.querySelector('thead input[type=checkbox]');
    if (head) {
      head.checked = ticked > 0 && ticked === ticks.length;
      head.indeterminate = ticked > 0 && ticked < ticks.length;
    }
    for (const place of all('[data-ticked]', form)) place.textContent = `(${ticked})`;
  }
};

document.addEventListener('change', ({ target }) => {
  if (target.matches('thead input[type=checkbox]')) {
    for (const tick of all('tbody input[type=checkbox]', target.closest('form')))
      tick.checked = target.checked;
  }
  countTicks();
});

// ---- Plots.

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
// A canvas knows no light-dark(): an element that wears the colour says what it is.
const resolved = (name) => {
  const probe = document.body.appendChild(document.createElement('i'));
  probe.style.color = colour(name) ? `var(${name})` : name;
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
};

const axisFont = '12px system-ui, sans-serif';
const short = (value) => (value >= 10_000 ? `${Math.round(value / 1000)}k` : String(value));

const optionsOf = (series, { width, height }) => ({
  width,
  height,
  tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
  cursor: { y: false, points: { size: 6 } },
  scales: { y: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] } },
  axes: [
    {
      stroke: resolved('--soft'),
      font: axisFont,
      grid: { show: false },
      ticks: { show: false },
      size: 28,
      values: (_, times) => times.map((at) => new Date(at * 1000).toISOString().slice(11, 16)),
    },
    {
      stroke: resolved('--soft'),
      font: axisFont,
      grid: { stroke: resolved('--line'), width: 1 },
      ticks: { show: false },
      size: 44,
      values: (_, values) => values.map(short),
    },
  ],
  series: [
    {
      value: (_, at) => (at === null ? '–' : new Date(at * 1000).toISOString().slice(11, 19)),
      label: 'UTC',
    },
    ...series.map((label, index) => ({
      label,
      stroke: resolved(`--s${index + 1}`),
      width: 1.75,
      points: { show: false },
      value: (_, value) => (value === null ? '–' : String(Math.round(value * 10) / 10)),
    })),
  ],
});

const draw = async (figure) => {
  const place = figure.querySelector('.plot');
  const answer = await fetch(figure.dataset.plot, { signal: AbortSignal.timeout(10_000) });
  if (!answer.ok) return;
  const { data } = await answer.json();
  const series = figure.dataset.series.split(',');
  const times = Number(figure.dataset.times ?? 1);
  const job = data.jobs[figure.dataset.job] ?? {};
  const figureOf = (value) => ((value ?? null) === null ? null : value * times);
  const columns = [
    data.at.map((at) => at / 1000),
    ...figure.dataset.fields
      .split(',')
      .map((name) => data.at.map((_, index) => figureOf(job[name]?.[index]))),
  ];
  if (figure.uplot) return figure.uplot.setData(columns);
  place.replaceChildren();
  const size = () => ({ width: place.clientWidth, height: 190 });
  figure.uplot = new uPlot(optionsOf(series, size()), columns, place);
  new ResizeObserver(() => figure.uplot?.setSize(size())).observe(place);
};

const plotEveryMs = 10_000;

const drawAll = () => {
  const figures = all('figure[data-plot]');
  if (figures.length === 0 || typeof uPlot === 'undefined') return;
  const round = () => {
    if (!document.hidden && isLive())
      for (const figure of figures) draw(figure).catch(() => undefined);
  };
  for (const figure of figures) draw(figure).catch(() => undefined);
  setInterval(round, plotEveryMs);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    for (const figure of figures) {
      figure.uplot?.destroy();
      figure.uplot = undefined;
      void draw(figure).catch(() => undefined);
    }
  });
};

startListening();
countTicks();
drawAll();
find('#said')?.focus();
