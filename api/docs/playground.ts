// The playground's form; the script beside it makes it work.
import { escapeHtml } from './highlight.ts';
import type { Facts } from './page.ts';

const off = '<p class="note">The playground is switched off on this server.</p>';

const human = ({ turnstileSiteKey: key }: Facts): string =>
  key ? `<div class="cf-turnstile" data-sitekey="${escapeHtml(key)}"></div>` : '';

/** The script of the bot check, where it is configured. */
export const turnstileScript = ({ playground, turnstileSiteKey, turnstileBaseUrl }: Facts) =>
  playground !== 'off' && turnstileSiteKey ? `${turnstileBaseUrl}/turnstile/v0/api.js` : undefined;

/** The HTML in the place of {{playground}}. */
export const playgroundForm = (facts: Facts): string => {
  if (facts.playground === 'off') return off;
  const live = facts.playground === 'live';
  const hint = live
    ? 'A real message goes out: use a phone of yours.'
    : 'Nothing goes out: any number will do.';
  return `<div class="try" id="playground" data-delivery="${facts.playground}">
<noscript><p class="note">This page needs JavaScript; the calls below work without.</p></noscript>
<div class="try-forms">
<form id="try-send" novalidate><label for="try-phone">Phone</label><p class="hint" id="try-phone-hint">${hint}</p>
<div class="row"><input id="try-phone" name="phone" type="tel" inputmode="tel" autocomplete="tel" aria-describedby="try-phone-hint" placeholder="+14155550123" required>
<button type="submit">Send a code</button></div>${human(facts)}</form>
<form id="try-verify" novalidate hidden><label for="try-code">Code</label><p class="hint" id="try-code-hint">Six digits, as the phone shows them.</p>
<div class="row"><input id="try-code" name="code" inputmode="numeric" autocomplete="one-time-code" maxlength="6" aria-describedby="try-code-hint" required>
<button type="submit">Verify</button></div></form>
<p class="try-result" id="try-result" role="status"></p>
</div>
<div class="phone" role="group" aria-label="What the phone shows"><div class="phone-screen"><p class="phone-title" id="phone-title">No messages yet</p><div id="phone-messages"></div></div></div>
<details class="try-wire"><summary>What went over the wire</summary><pre tabindex="0" aria-label="Requests and answers"><code id="try-log">Nothing yet.</code></pre></details>
</div>`;
};
