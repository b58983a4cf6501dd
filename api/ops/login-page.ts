// The one page everybody may see: it asks for a name and the token.

const escaped = (text: string): string =>
  text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);

const style = `
:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}
body{margin:0;min-height:100vh;display:grid;place-items:center;background:Canvas;color:CanvasText}
form{box-sizing:border-box;width:min(22rem,100vw);padding:1.5rem;display:grid;gap:.9rem}
h1{font-size:1.25rem;margin:0}
label{display:grid;gap:.25rem}
input,button{font:inherit;padding:.55rem .6rem;border:1px solid GrayText;border-radius:.4rem}
button{cursor:pointer;background:CanvasText;color:Canvas;border-color:CanvasText}
p{margin:0}
.problem{border-left:.25rem solid #d33;padding-left:.6rem}
`;

/** The login form; `to` is where it leads, `problem` says why it is shown again, with the name as it was written. */
export const loginPage = (given: {
  action: string;
  to: string;
  actor?: string | undefined;
  problem?: string | undefined;
}): string => `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>Tessera ops: log in</title><style>${style}</style></head><body><main>
<form method="post" action="${given.action}">
<h1>Tessera ops</h1>
${given.problem === undefined ? '' : `<p class="problem" role="alert">${escaped(given.problem)}</p>`}
<input type="hidden" name="to" value="${escaped(given.to)}">
<label>Your name <input name="actor" required maxlength="60" autocomplete="username" value="${escaped(given.actor ?? '')}"></label>
<label>Token <input name="token" type="password" required autocomplete="current-password"></label>
<button>Log in</button>
<p>The token is OPS_TOKEN of the installation; your name stands in the audit log.</p>
</form></main></body></html>
`;
