// Questions before what cannot be taken back, and the login when it has ended in the middle.

/** Tab goes round within it: a browser would lead out to its own bars in between. */
const goRound = (dialog, event) => {
  if (event.key !== 'Tab') return;
  const stops = [...dialog.querySelectorAll('input, button')];
  const last = event.shiftKey ? stops[0] : stops.at(-1);
  if (document.activeElement !== last) return;
  event.preventDefault();
  (event.shiftKey ? stops.at(-1) : stops[0]).focus();
};

const open = (content) => {
  const dialog = document.createElement('dialog');
  dialog.setAttribute('aria-labelledby', 'asked');
  dialog.innerHTML = content;
  dialog.addEventListener('keydown', (event) => goRound(dialog, event));
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
};

const closed = (dialog) =>
  new Promise((resolve) => {
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(dialog.returnValue);
    });
  });

/** Whether something stands in front of the page. */
export const isAsking = () => document.querySelector('dialog[open]') !== null;

/** Asks; true only for a plain yes. Escape is a no, and so is the button that has the focus first. */
export const confirmed = async (text, yes) => {
  const dialog = open(`<form method="dialog"><h2 id="asked"></h2>
<div class="line"><button value="no" autofocus>Cancel</button><button value="yes" class="main"></button></div></form>`);
  dialog.querySelector('h2').textContent = text;
  dialog.querySelector('.main').textContent = yes;
  return (await closed(dialog)) === 'yes';
};

const loginForm = `<form><h2 id="asked">Log in again</h2>
<p>Your login has ended. What you have written is still here.</p>
<label class="field"><span>Your name</span><input name="actor" required maxlength="60" autocomplete="username"></label>
<label class="field"><span>Token</span><input name="token" type="password" required autocomplete="current-password"></label>
<p class="said failed" role="alert" hidden></p>
<div class="line"><button class="main">Log in</button><button type="button" value="no">Not now</button></div></form>`;

const logIn = async (form) => {
  const answer = await fetch('/ops/login', {
    ...{ method: 'POST', redirect: 'manual', body: new URLSearchParams(new FormData(form)) },
    headers: { Accept: 'text/html' },
  });
  if (answer.type === 'opaqueredirect') return undefined;
  const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
  return page.querySelector('[role=alert]')?.textContent ?? 'That did not work.';
};

/** Asks for the login in front of the page; true when somebody is logged in afterwards. */
export const logInAgain = async () => {
  const dialog = open(loginForm);
  const form = dialog.querySelector('form');
  const problem = form.querySelector('[role=alert]');
  form.elements.actor.value = document.getElementById('actor')?.textContent ?? '';
  (form.elements.actor.value ? form.elements.token : form.elements.actor).focus();
  dialog.querySelector('[value=no]').addEventListener('click', () => dialog.close('no'));
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const why = await logIn(form).catch(() => 'The ops listener does not answer.');
    if (why === undefined) return dialog.close('yes');
    problem.hidden = false;
    problem.textContent = why;
  });
  return (await closed(dialog)) === 'yes';
};
