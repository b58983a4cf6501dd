// A new page laid over the old one: only what differs changes, so that focus, fields and open parts stay.

// A form with a field called id has that field in the place of its own id.
const keyOf = (node) =>
  node.nodeType === 1 ? node.getAttribute('id') || node.getAttribute('data-key') || '' : '';
const alike = (a, b) => a.nodeName === b.nodeName && keyOf(a) === keyOf(b);
/** Put there by a script, unknown to the server. */
const isOurs = (node) => node.nodeType === 1 && node.hasAttribute('data-ours');

const isChanged = (node) => {
  if (node.type === 'hidden') return false;
  if (node.type === 'checkbox' || node.type === 'radio')
    return node.checked !== node.defaultChecked;
  if (node.nodeName !== 'SELECT') return node.value !== node.defaultValue;
  const first = [...node.options].findIndex((option) => option.defaultSelected);
  return node.selectedIndex !== Math.max(first, 0);
};

/** The fields of a part in which somebody has typed or ticked something, or is about to. */
export const touched = (within) =>
  [...within.querySelectorAll('input, select, textarea')].filter(
    (node) => isChanged(node) || (node === document.activeElement && node.type !== 'hidden'),
  );

const kept = new Set(['open', 'tabindex', 'aria-invalid', 'aria-describedby', 'aria-busy']);
const ofFields = new Set(['value', 'checked', 'selected']);

const staysAsItIs = (node, name) =>
  kept.has(name) || (ofFields.has(name) && (node === document.activeElement || isChanged(node)));

const layAttributes = (old, fresh) => {
  for (const { name, value } of fresh.attributes) {
    if (!staysAsItIs(old, name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    if (!staysAsItIs(old, name) && !fresh.hasAttribute(name)) old.removeAttribute(name);
  }
};

const layChildren = (old, fresh) => {
  const named = new Map([...old.childNodes].filter(keyOf).map((node) => [keyOf(node), node]));
  const pass = (node) => {
    let at = node;
    while (at && isOurs(at)) at = at.nextSibling;
    return at;
  };
  let at = pass(old.firstChild);
  for (const next of [...fresh.childNodes]) {
    const known = keyOf(next) ? named.get(keyOf(next)) : at;
    if (known && alike(known, next)) {
      if (known === at) at = pass(at.nextSibling);
      else old.insertBefore(known, at);
      lay(known, next);
    } else {
      old.insertBefore(document.importNode(next, true), at);
    }
  }
  while (at) {
    const gone = at;
    at = pass(at.nextSibling);
    gone.remove();
  }
};

const lay = (old, fresh) => {
  if (old.nodeType !== 1) {
    if (old.data !== fresh.data) old.data = fresh.data;
  } else if (!old.hasAttribute('data-keep') && !old.isEqualNode(fresh)) {
    // The list of a select stays still while somebody chooses from it.
    if (old.nodeName === 'SELECT' && old === document.activeElement) return;
    layAttributes(old, fresh);
    layChildren(old, fresh);
  }
};

/** Who had the focus gets it back; where it is gone, the part it was in does. */
const holdFocus = (change) => {
  const before = document.activeElement;
  const around = [];
  for (let node = before?.parentElement; node; node = node.parentElement) around.push(node);
  change();
  if (!before || before === document.body || document.activeElement === before) return;
  const place = before.isConnected
    ? before
    : around.find((node) => node.isConnected && node.matches('section, form, article, main'));
  if (!place) return;
  if (place !== before && !place.hasAttribute('tabindex')) place.tabIndex = -1;
  place.focus({ preventScroll: true });
};

/** A page that says less than the one shown, because an engine is away. */
const saysLess = (fresh, old) =>
  fresh.hasAttribute('data-trouble') ||
  fresh.querySelectorAll('.away').length > old.querySelectorAll('.away:not([data-ours])').length;

/** Whether a form that somebody writes in is not on the new page: what it was about may be over. */
const losesForm = (fresh, fields) =>
  fields.some(({ form }) => {
    const key = form?.dataset.key;
    return key !== undefined && !fresh.querySelector(`form[data-key="${CSS.escape(key)}"]`);
  });

/**
 * Lays the parts of `fresh` that live over those shown. A page that has less to show does not take away what somebody
 * is writing in: then it answers false, and the page itself stays as it was.
 */
export const layPage = (fresh) => {
  const page = document.getElementById('page');
  const next = fresh.getElementById('page');
  const fields = touched(page);
  const stays = fields.length > 0 && next && (saysLess(next, page) || losesForm(next, fields));
  holdFocus(() => {
    for (const old of document.querySelectorAll('[data-live]')) {
      const part = fresh.getElementById(old.id);
      if (part && !(stays && old === page)) lay(old, part);
    }
  });
  if (fresh.body.dataset.every) document.body.dataset.every = fresh.body.dataset.every;
  const word = fresh.querySelector('input[name=csrf]')?.value;
  if (word) for (const field of document.querySelectorAll('input[name=csrf]')) field.value = word;
  document.dispatchEvent(new CustomEvent('laid'));
  return !stays;
};

/** A page as a document. */
export const parse = (text) => new DOMParser().parseFromString(text, 'text/html');
