// The examination: settings first, then everything they lead to, side by side.
import { createHttp } from '../infra/http.ts';
import type { Clock } from '../kernel/clock.ts';
import { examineAddresses } from './address.ts';
import { examineBroker, examineMysql, examineRedis } from './engines.ts';
import { examineMetaApp } from './meta-app.ts';
import { watchClocks } from './outside-clock.ts';
import { examineStripe, examineTurnstile } from './providers.ts';
import type { Area, Finding } from './rules.ts';
import { examineSettings } from './settings.ts';
import { examineTelegram } from './telegram.ts';
import { examineWhatsapp } from './whatsapp.ts';

export type Patient = {
  env: Record<string, string | undefined>;
  clock: Clock;
  /** Names of the migrations of this release. */
  migrations: readonly string[];
};

const providerTimeoutMs = 8_000;

/** Everything there is to be said about an installation; changes nothing, never throws for what it finds. */
export const examine = async ({ env, clock, migrations }: Patient): Promise<Finding[]> => {
  const { config, findings } = examineSettings(env);
  if (!config) return findings;
  const http = createHttp({ timeoutMs: providerTimeoutMs, connections: 4 });
  const clocks = watchClocks(http, clock);
  const deps = { http: clocks.http, config, clock };
  try {
    const [app, telegram, ...found] = await Promise.all([
      examineMetaApp(deps),
      examineTelegram(deps),
      examineMysql(config, clock, migrations),
      examineRedis(config, clock),
      examineBroker(config, http),
      examineWhatsapp(deps),
      examineStripe(deps),
      examineTurnstile(deps),
    ]);
    const addresses = await examineAddresses(http, config, [app.address, telegram.address]);
    return [
      ...[...findings, ...found.flat(), ...clocks.findings()],
      ...[...app.findings, ...telegram.findings, ...addresses],
    ];
  } finally {
    await http.close();
  }
};

const order: readonly Area[] = [
  ...(['Settings', 'Engines', 'Clocks', 'Queues'] as const),
  ...(['WhatsApp', 'Telegram', 'Other providers', 'Webhooks'] as const),
];

const marks = { ok: 'ok     ', warning: 'warning', error: 'error  ' } as const;

const lineOf = ({ level, text, advice }: Finding): string =>
  level === 'ok' ? `  ${marks.ok}  ${text}` : `  ${marks[level]}  ${text}\n           → ${advice}`;

const count = (findings: readonly Finding[], level: Finding['level']): number =>
  findings.filter((finding) => finding.level === level).length;

const verdict = (findings: readonly Finding[]): string => {
  const [errors, warnings] = [count(findings, 'error'), count(findings, 'warning')];
  if (errors + warnings === 0) return 'Nothing is wrong.';
  return `${errors} error${errors === 1 ? '' : 's'}, ${warnings} warning${warnings === 1 ? '' : 's'}.`;
};

/** The findings as a page of text. */
export const describeFindings = (findings: readonly Finding[]): string => {
  const parts = order.flatMap((area) => {
    const here = findings.filter((finding) => finding.area === area);
    return here.length === 0 ? [] : [[area, ...here.map(lineOf)].join('\n')];
  });
  return `${[...parts, verdict(findings)].join('\n\n')}\n`;
};
