// Plots of the last hour and day, each with a sentence that says the same in words.
import { isLive } from './live.js';

const plotEveryMs = 10_000;
const height = 180;

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
// A canvas knows no light-dark(): an element that wears the colour says what it is.
const resolved = (name) => {
  const probe = document.body.appendChild(document.createElement('i'));
  probe.style.color = colour(name) ? `var(${name})` : name;
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
};

const font = '12px system-ui, sans-serif';
const figure = new Intl.NumberFormat('en-US', { maximumFractionDigits: 1 });
const short = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 2 });
const clock = (seconds) => new Date(seconds * 1_000).toISOString().slice(11, 16);
const known = (value) => value !== null && value !== undefined;

const axes = (unit) => [
  {
    ...{ font, stroke: resolved('--soft'), size: 26, space: 70 },
    grid: { show: false },
    ticks: { stroke: resolved('--line'), size: 4 },
    values: (_, times) => times.map(clock),
  },
  {
    ...{ font, stroke: resolved('--soft'), size: 52 },
    grid: { stroke: resolved('--line'), width: 1 },
    ticks: { show: false },
    values: (_, values) =>
      values.map((value) => (value % 1 && !unit ? '' : short.format(value) + unit)),
  },
];

const dashes = [undefined, [6, 3], [2, 3], [9, 3, 2, 3]];

const optionsOf = ({ series, unit, spanSeconds }, width, onCursor) => ({
  ...{ width, height, axes: axes(unit), legend: { show: false } },
  cursor: { y: false, points: { size: 6 } },
  hooks: { setCursor: [({ cursor }) => onCursor(cursor.idx ?? undefined)] },
  tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1_000), 'Etc/UTC'),
  scales: {
    x: { range: () => [Date.now() / 1_000 - spanSeconds, Date.now() / 1_000] },
    y: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] },
  },
  series: [
    {},
    ...series.map((label, index) => ({
      ...{ label, stroke: resolved(`--s${index + 1}`), width: 1.75, dash: dashes[index] },
      points: { show: false },
    })),
  ],
});

const highest = (column, times) => {
  const most = Math.max(...column.filter(known));
  return `highest ${figure.format(most)} at ${clock(times[column.indexOf(most)])}`;
};

const wordsOf = (label, column, { times, unit, at }) => {
  const value = column[at];
  if (!column.some(known)) return `${label}: not known`;
  const now = known(value) ? figure.format(value) + unit : 'not known';
  return `${label} ${now}, ${highest(column, times)}`;
};

/** What the plot shows, in words that stand under it: each line's figure at the cursor or now, and its highest. */
const say = (place, { series, unit, columns }, at = columns[0].length - 1) => {
  const [times, ...lines] = columns;
  const list = place.querySelector('.lines');
  list.replaceChildren(
    ...series.map((label, index) => {
      const item = document.createElement('li');
      item.dataset.line = String(index + 1);
      item.textContent = wordsOf(label, lines[index], { times, unit, at });
      return item;
    }),
  );
  place.querySelector('.at').textContent = `${clock(times[at])} UTC`;
};

const columnsOf = (place, data) => {
  const times = Number(place.dataset.times ?? 1);
  const job = data.jobs[place.dataset.job] ?? {};
  const line = (name) =>
    data.at.map((_, index) => (known(job[name]?.[index]) ? job[name][index] * times : null));
  return [data.at.map((at) => at / 1_000), ...place.dataset.fields.split(',').map(line)];
};

const instead = (place, text) => {
  place.uplot?.destroy();
  place.uplot = undefined;
  place.querySelector('.plot').textContent = text;
  place.querySelector('.lines').replaceChildren();
  place.querySelector('.at').textContent = '';
};

const draw = (place, data) => {
  const columns = columnsOf(place, data);
  if (columns[0].length === 0) {
    return instead(place, 'Nothing is known yet: a sample is kept every five seconds.');
  }
  const plot = {
    ...{ columns, series: place.dataset.series.split(','), unit: place.dataset.unit ?? '' },
    spanSeconds: data.span === 'day' ? 86_400 : 3_600,
  };
  place.shown = plot;
  say(place, plot);
  if (place.uplot) return place.uplot.setData(columns);
  const box = place.querySelector('.plot');
  box.replaceChildren();
  const options = optionsOf(plot, box.clientWidth, (at) => say(place, place.shown, at));
  place.uplot = new uPlot(options, columns, box);
  new ResizeObserver(() => place.uplot?.setSize({ width: box.clientWidth, height })).observe(box);
};

const drawAll = async (places) => {
  for (const [address, some] of Map.groupBy(places, ({ dataset }) => dataset.plot)) {
    try {
      const answer = await fetch(address, { signal: AbortSignal.timeout(plotEveryMs) });
      const { data } = await answer.json();
      for (const place of some) draw(place, data);
    } catch {
      const text = 'The history cannot be shown: Redis keeps it, and it does not answer.';
      for (const place of some) instead(place, text);
    }
  }
};

/** Draws the plots of the page, and again every ten seconds, and in the colours of the evening. */
export const startPlots = () => {
  const places = [...document.querySelectorAll('figure[data-plot]')];
  if (places.length === 0) return;
  void drawAll(places);
  setInterval(() => {
    if (!document.hidden && isLive()) void drawAll(places);
  }, plotEveryMs);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    for (const place of places) instead(place, '');
    void drawAll(places);
  });
};
