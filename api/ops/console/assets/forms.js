// Forms without leaving the page: a question first where one is due, the answer in its place, the fields that are wrong marked.
import { confirmed, logInAgain } from './dialogs.js';
import { layPage, parse } from './lay.js';

const patienceMs = 20_000;

const post = (body, action) =>
  fetch(action, {
    ...{ method: 'POST', body, headers: { Accept: 'text/html' } },
    signal: AbortSignal.timeout(patienceMs),
  });

const freshWord = async () => {
  const answer = await fetch('/ops/api/session', { headers: { Accept: 'application/json' } });
  return (await answer.json()).data.csrf;
};

/** Sends it; a login that has ended is asked for, and then it is sent once more: it was not taken the first time. */
const send = async (body, action) => {
  let answer = await post(body, action);
  if (answer.status === 401 && !(await logInAgain())) return undefined;
  if (answer.status === 401 || answer.status === 403) {
    body.set('csrf', await freshWord());
    answer = await post(body, action);
  }
  return answer;
};

const unmark = (form) => {
  form.querySelector('[data-ours]')?.remove();
  for (const field of form.querySelectorAll('[aria-invalid]')) {
    field.removeAttribute('aria-invalid');
    field.removeAttribute('aria-describedby');
  }
};

/** Says in the form why it was not taken, and leads to the first field that is wrong. */
const refuse = (form, text, names = []) => {
  const place = document.createElement('p');
  place.className = 'said failed';
  place.id = `why-${form.dataset.key ?? 'form'}`;
  place.dataset.ours = '';
  place.setAttribute('role', 'alert');
  form.append(place);
  place.textContent = text;
  const fields = names
    .map((name) => form.querySelector(`[name="${CSS.escape(name)}"]:not([type=hidden])`))
    .filter(Boolean);
  for (const field of fields) {
    field.setAttribute('aria-invalid', 'true');
    field.setAttribute('aria-describedby', place.id);
  }
  (fields[0] ?? document.activeElement)?.focus();
};

/** Says at the foot of the screen what was done, for a while. */
const toldForMs = 8_000;
let forgetting;
export const told = (text) => {
  const place = document.getElementById('told');
  clearTimeout(forgetting);
  place.textContent = text;
  forgetting = setTimeout(() => {
    place.textContent = '';
  }, toldForMs);
};

/** What names a booking stays the same until it is done, so that asking twice books once. */
const renewOnce = (form, page) => {
  const mark = form.querySelector('[name=once]');
  const fresh = page.querySelector(`form[data-key="${CSS.escape(form.dataset.key)}"] [name=once]`);
  if (mark && fresh) mark.value = fresh.value;
};

const show = (form, page) => {
  const said = page.getElementById('said');
  if (!said) throw new Error('nothing was said');
  if (said.classList.contains('failed'))
    return refuse(form, said.textContent, said.dataset.fields?.split(' '));
  form.reset();
  renewOnce(form, page);
  for (const part of form.querySelectorAll('details[open]')) part.open = false;
  layPage(page);
  told(said.textContent);
};

const filled = (text, body) =>
  text.replace(/\{(\w+)\}/g, (_, name) => String(body.get(name) ?? '').trim() || '–');

const take = async (form, button) => {
  const body = new URLSearchParams(new FormData(form, button));
  const action = button?.getAttribute('formaction') ?? form.getAttribute('action');
  const question = button?.dataset.ask;
  unmark(form);
  if (question && !(await confirmed(filled(question, body), button.dataset.yes))) return;
  form.setAttribute('aria-busy', 'true');
  try {
    const answer = await send(body, action);
    if (answer === undefined) {
      return refuse(form, 'Nothing was changed: you are not logged in.');
    }
    if (answer.status >= 400 && answer.headers.get('content-type')?.includes('json')) {
      const { error } = await answer.json();
      return refuse(form, `Nothing was changed. ${error.message}`);
    }
    const page = parse(await answer.text());
    // What leads elsewhere, or has found something and says no word, is its own address: it can be reloaded.
    const elsewhere = new URL(answer.url).pathname !== location.pathname;
    const found = !page.getElementById('said') && answer.url !== location.href;
    if (answer.redirected && (elsewhere || found)) return location.assign(answer.url);
    if (!page.getElementById('page')) throw new Error('not a page');
    show(form, page);
  } catch {
    refuse(form, 'The ops listener gave no answer. Look whether it was done before you try again.');
  } finally {
    form.removeAttribute('aria-busy');
  }
};

// ---- Lists with ticks: all at once, and how many.

const ticksOf = (form) => [...form.querySelectorAll('tbody input[type=checkbox]')];

export const countTicks = () => {
  for (const form of document.querySelectorAll('form[data-ticks]')) {
    const ticks = ticksOf(form);
    const ticked = ticks.filter(({ checked }) => checked).length;
    const every = form.querySelector('#every');
    if (every) {
      every.checked = ticked > 0 && ticked === ticks.length;
      every.indeterminate = ticked > 0 && ticked < ticks.length;
    }
    for (const place of form.querySelectorAll('[data-ticked]')) place.textContent = String(ticked);
  }
};

/** Takes over the forms of the page; without this they work by themselves, each with a page of its own. */
export const takeForms = () => {
  document.addEventListener('submit', (event) => {
    const form = event.target;
    if (form.method !== 'post' || form.hasAttribute('data-plain')) return;
    event.preventDefault();
    if (!form.hasAttribute('aria-busy')) void take(form, event.submitter);
  });
  document.addEventListener('change', ({ target }) => {
    if (target.id === 'every') {
      for (const tick of ticksOf(target.form)) tick.checked = target.checked;
    }
    countTicks();
  });
  document.addEventListener('laid', countTicks);
  countTicks();
};
