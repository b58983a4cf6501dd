// The frame around every page: what is wrong first, the menu, who is logged in, and the page itself.

import { version } from '../../../lib/kernel/version.ts';
import type { OpsApp } from '../../../lib/ops-app.ts';
import type { OpsCaller } from '../auth.ts';
import { asset, laterScripts } from './assets.ts';
import type { Flash } from './flash.ts';
import { counted } from './format.ts';
import { type Html, html } from './html.ts';

const menu = [
  ['/ops', 'Overview'],
  ['/ops/queues', 'Queues'],
  ['/ops/dead', 'Dead letters'],
  ['/ops/channels', 'Channels'],
  ['/ops/messages', 'Messages'],
  ['/ops/accounts', 'Accounts'],
  ['/ops/capacity', 'Capacity'],
  ['/ops/payments', 'Payments'],
  ['/ops/switches', 'Switches'],
  ['/ops/processes', 'Processes'],
  ['/ops/audit', 'Audit log'],
] as const;

/** What the frame says of the state of things: how many problems there are, the worst of them, and engines away. */
export type Standing = {
  count: number;
  worst: 'urgent' | 'warning' | 'note' | undefined;
  away: readonly string[];
};

export type Framed = {
  page: { path: string; menu: string; everySeconds: number; plots?: boolean };
  title: string;
  body: Html;
  /** The page stands in the place of one that cannot be made. */
  isTrouble: boolean;
  caller: OpsCaller;
  flash: Flash | undefined;
  standing: Standing;
};

const icon =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Crect width='32' height='32' rx='7' fill='%234b3fb8'/%3E%3Cpath d='M8 9h16v4h-6v11h-4V13H8z' fill='%23fff'/%3E%3C/svg%3E";

const mark = html`<svg viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="7" fill="currentColor"/><path d="M8 9h16v4h-6v11h-4V13H8z" fill="var(--on-key)"/></svg>`;

const entry = (here: string, [path, text]: readonly [string, string]): Html =>
  html`<li><a href="${path}"${path === here ? html` aria-current="page"` : ''}>${text}</a></li>`;

const standingLink = ({ count, worst }: Standing): Html =>
  html`<a id="standing" data-live href="/ops" class="standing ${worst ?? 'none'}">${
    count === 0 ? 'Nothing is wrong' : counted(count, 'problem')
  }</a>`;

const said = (flash: Flash | undefined): Html | undefined =>
  flash &&
  html`<p class="said ${flash.tone}" role="${flash.tone === 'done' ? 'status' : 'alert'}" tabindex="-1" id="said" data-fields="${(flash.fields ?? []).join(' ')}">${flash.text}</p>`;

const header = ({ standing }: Framed): Html => html`<header>
<a class="brand" href="/ops">${mark}<span>Tessera <b>ops</b></span></a>
${standingLink(standing)}
<span class="live"><span id="heard" role="status"></span><button type="button" id="live" hidden aria-pressed="true">Live</button></span>
<button type="button" class="menu" popovertarget="menu">Menu</button>
</header>`;

const menuOf = ({
  page,
  caller,
}: Framed): Html => html`<nav id="menu" popover aria-label="Pages"><ul>${menu.map((each) => entry(page.menu, each))}</ul>
<div class="who"><span id="actor">${caller.actor}</span>${
  caller.csrf !== undefined &&
  html`<form method="post" action="/ops/logout" data-plain><input type="hidden" name="csrf" value="${caller.csrf}"><button class="plain">Log out</button></form>`
}</div></nav>`;

/** On the overview the problems themselves say so. */
const awayList = ({ page, standing: { away } }: Framed): Html =>
  html`<div id="away" data-live>${page.path !== '/ops' && away.map((text) => html`<p class="alarm">${text}</p>`)}</div>`;

/** The whole document. */
export const frame = (app: Pick<OpsApp, 'clock'>, framed: Framed): Html => {
  const { page, title, body, flash, isTrouble } = framed;
  const plots = page.plots
    ? html`<link rel="stylesheet" href="${asset('uplot.css')}"><script src="${asset('uplot.js')}" defer></script>`
    : '';
  return html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark"><title>${title} · Tessera ops</title>
<link rel="icon" href="${icon}"><link rel="stylesheet" href="${asset('console.css')}">${plots}
${laterScripts().map((path) => html`<link rel="modulepreload" href="${path}">`)}
<script type="module" src="${asset('console.js')}"></script></head>
<body data-every="${page.everySeconds}"><a class="skip" href="#main">To the content</a>
${header(framed)}
${menuOf(framed)}
<main id="main" tabindex="-1">${awayList(framed)}${said(flash)}<div id="page" data-live${isTrouble ? html` data-trouble` : ''}><h1>${title}</h1>
${body}</div></main>
<footer>Tessera ${version}. All times are UTC; this page was made at <time id="made" data-live>${new Date(app.clock.now()).toISOString().slice(11, 19)}</time>.</footer>
<p id="told" role="status"></p></body></html>
`;
};
