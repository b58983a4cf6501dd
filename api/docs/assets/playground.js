// The playground: sends, shows what a phone would show, verifies, and logs what went over the wire.
const byId = (id) => document.getElementById(id);
const box = byId('playground');

const make = (tag, members = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), members);
  element.append(...children);
  return element;
};

/** A made-up number that nobody else tries at the same time. */
const madeUp = () => {
  const [random] = crypto.getRandomValues(new Uint32Array(1));
  return `+1555${String(7_000_000 + (random % 1_000_000))}`;
};

const log = (text) => {
  const shown = byId('try-log');
  shown.textContent =
    shown.textContent === 'Nothing yet.' ? text : `${text}\n\n${shown.textContent}`;
};

const post = async (path, body) => {
  const answer = await fetch(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const json = await answer.json();
  log(
    `POST ${path}\n${JSON.stringify(body)}\n\n${answer.status}\n${JSON.stringify(json, null, 2)}`,
  );
  return { status: answer.status, ...json };
};

const say = (kind, ...parts) => {
  const shown = byId('try-result');
  shown.className = `try-result is-${kind}`;
  shown.replaceChildren(...parts);
};

const sayError = (error) => {
  const page = make('a', { href: `/docs/errors/${error.code}`, textContent: error.code });
  const wait = error.retry_after_seconds ? ` Wait ${error.retry_after_seconds} seconds.` : '';
  const left =
    error.attempts_remaining === undefined ? '' : ` Tries left: ${error.attempts_remaining}.`;
  const issue = error.details?.map(({ field, issue }) => ` ${field} ${issue}.`).join('') ?? '';
  say('error', page, ` ${error.message}${issue}${left}${wait}`);
};

const names = { whatsapp: 'WhatsApp', telegram: 'Telegram' };

const showOnPhone = ({ preview, delivery }) => {
  byId('phone-title').textContent = preview ? names[preview.channel] : 'Look at your phone';
  if (!preview) return;
  const time = new Date().toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
  const bubble = make(
    'div',
    { className: `bubble bubble-${preview.channel}` },
    make('p', { textContent: preview.text }),
    make('time', { textContent: time }),
  );
  if (preview.channel === 'whatsapp') {
    const copy = make('button', { type: 'button', textContent: 'Copy code' });
    copy.addEventListener('click', () => {
      byId('try-code').value = preview.code;
      byId('try-code').focus();
    });
    bubble.append(copy);
  }
  byId('phone-messages').prepend(bubble);
  box.dataset.sent = delivery;
};

/** Runs `work` with the form's button held, so that a double click is one. */
const submits = (form, work) => {
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const button = form.querySelector('button[type=submit]');
    button.disabled = true;
    try {
      await work();
    } catch {
      say('error', 'The server could not be reached.');
    } finally {
      button.disabled = false;
    }
  });
};

submits(byId('try-send'), async () => {
  const phone = byId('try-phone').value.replace(/[\s().-]/g, '');
  const token = document.querySelector('[name=cf-turnstile-response]')?.value;
  const { data, error } = await post('/v1/playground/send', {
    phone,
    ...(token ? { turnstile_token: token } : {}),
  });
  window.turnstile?.reset();
  if (error) return sayError(error);
  say('good', 'Sent. The code is valid for five minutes.');
  showOnPhone(data);
  byId('try-verify').hidden = false;
  byId('try-code').focus();
});

submits(byId('try-verify'), async () => {
  const phone = byId('try-phone').value.replace(/[\s().-]/g, '');
  const { data, error } = await post('/v1/playground/verify', {
    phone,
    code: byId('try-code').value.trim(),
  });
  if (error) return sayError(error);
  if (data.verified) say('good', 'Verified. The code is used up now.');
});

if (box.dataset.delivery === 'sandbox') byId('try-phone').value = madeUp();
