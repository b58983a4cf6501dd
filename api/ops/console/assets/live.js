// Asking for what is new, as often as the page says, while somebody looks.
import { isAsking, logInAgain } from './dialogs.js';
import { layPage, parse } from './lay.js';

const button = document.getElementById('live');
const heard = document.getElementById('heard');
const patienceMs = 10_000;
let timer;
let loggedOut = false;

const everyMs = () => Number(document.body.dataset.every) * 1_000;
export const isLive = () => sessionStorage.getItem('live') !== 'no';

const labels = {
  live: ['Live', 'The page refreshes itself. Press to hold it still.'],
  still: ['Held still', 'Press to let the page refresh itself again.'],
  out: ['Log in', 'Your login has ended. Press to log in again.'],
};

const showLive = () => {
  const [label, title] = labels[loggedOut ? 'out' : isLive() ? 'live' : 'still'];
  if (button.textContent !== label) button.textContent = label;
  button.title = title;
  button.setAttribute('aria-pressed', String(isLive() && !loggedOut));
};

/** What keeps the page from being new; empty when nothing does. */
const tell = (text) => {
  if (heard.textContent !== text) heard.textContent = text;
  button.toggleAttribute('data-lost', text !== '');
};

const shownAt = () => document.getElementById('made')?.textContent ?? '';

const listen = async () => {
  const asOf = shownAt();
  try {
    const answer = await fetch(location.href, {
      headers: { Accept: 'text/html', 'X-Live': '1' },
      signal: AbortSignal.timeout(patienceMs),
    });
    loggedOut = answer.status === 401;
    if (loggedOut) {
      tell(`Logged out; as of ${asOf}`);
    } else {
      const page = parse(await answer.text());
      // Nothing moves while somebody is asked something.
      if (isLive() && !isAsking()) tell(layPage(page) ? '' : `Some of this is as of ${asOf}`);
    }
  } catch {
    if (heard.textContent === '') tell(`No answer; as of ${asOf}`);
  }
  showLive();
  later();
};

const later = () => {
  clearTimeout(timer);
  if (everyMs() > 0 && isLive() && !document.hidden && !loggedOut)
    timer = setTimeout(listen, everyMs());
};

const press = async () => {
  if (loggedOut) {
    if (!(await logInAgain())) return;
    loggedOut = false;
  } else {
    sessionStorage.setItem('live', isLive() ? 'no' : 'yes');
  }
  showLive();
  if (isLive()) void listen();
};

/** Begins, where the page says how often. */
export const startListening = () => {
  if (everyMs() === 0) return;
  button.hidden = false;
  button.addEventListener('click', press);
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) later();
    else if (isLive() && !loggedOut) void listen();
  });
  showLive();
  later();
};
