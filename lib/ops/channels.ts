// The channels as operators see them: how each number fares, what it was refused for, and pausing it.
import type { PriceStore } from '../billing/price-store.ts';
import type { WhatsappManagement } from '../channels/whatsapp-management.ts';
import type { Clock } from '../kernel/clock.ts';
import { minute } from '../kernel/clock.ts';
import type { Config } from '../kernel/config.ts';
import { inTimeOrNull } from '../kernel/in-time.ts';
import type { Revocations } from '../keys/revocations.ts';
import type { ChannelName } from '../messages/rules.ts';
import type { SenderWatch } from '../sender/health.ts';
import { channelSwitch, numberSwitch, type Pauses } from '../sender/pauses.ts';
import type { SenderTally } from '../sender/tally.ts';
import type { TallyView } from '../sender/tally-rules.ts';
import type { ConnectedNumber, LookupStore, NumberFilter } from './lookup-store.ts';

export type ChannelDeps = {
  config: Config;
  prices: Pick<PriceStore, 'setPaused'>;
  revocations: Pick<Revocations, 'announce'>;
  pauses: Pauses;
  senders: Pick<SenderWatch, 'shown'>;
  tally: Pick<SenderTally, 'read' | 'troubled'>;
  lookup: Pick<LookupStore, 'numbers' | 'numbersOf'>;
  management: Pick<WhatsappManagement, 'readNumber'>;
  clock: Clock;
};

export type ChannelView = {
  channel: ChannelName;
  /** The number at WhatsApp; `telegram` for the bot. */
  id: string;
  kind: 'shared' | 'own' | 'bot';
  status: 'ok' | 'degraded' | 'paused' | 'down' | 'not_configured' | 'unknown';
  /** Since when it is in this status, ms; null when nobody knows. */
  since: number | null;
  account: { id: string; name: string } | null;
  displayPhoneNumber: string | null;
  qualityRating: string | null;
  brokenReason: string | null;
  /** What the workers decided by themselves. */
  breaker: { state: string; since: string | null };
  /** Null while Redis cannot be asked. */
  hour: TallyView | null;
};

const shownMinutes = 60;
/** A Redis that keeps silent makes its figures unknown; the rest is shown. */
const patienceMs = 2_000;
/** More numbers in trouble than anybody reads one by one. */
const watchedMost = 200;
const qualityEveryMs = 5 * minute;

/** The provider's word about the shared number, asked for once in five minutes; null while it says nothing. */
export const createSharedQuality = ({
  config,
  management,
  clock,
}: Pick<ChannelDeps, 'config' | 'management' | 'clock'>) => {
  let known: { at: number; rating: Promise<string | null> } | undefined;
  return (): Promise<string | null> => {
    const now = clock.now();
    if (!known || now - known.at > qualityEveryMs) {
      const rating = management
        .readNumber(config.whatsappAccessToken, config.whatsappPhoneNumberId)
        .then(
          (facts) => facts.qualityRating,
          () => null,
        );
      known = { at: now, rating };
    }
    return known.rating;
  };
};

type Subject = Pick<
  ChannelView,
  'channel' | 'id' | 'kind' | 'account' | 'displayPhoneNumber' | 'qualityRating' | 'brokenReason'
> & { configured: boolean; brokenAt: number | null };

const unknown = { status: 'unknown', since: null } as const;

const view = async (deps: ChannelDeps, subject: Subject): Promise<ChannelView> => {
  const { configured, brokenAt, ...said } = subject;
  const number = subject.channel === 'whatsapp' ? subject.id : undefined;
  const pausedSince = deps.pauses.since(subject.channel, number);
  const [shown, hour] = await Promise.all([
    inTimeOrNull(deps.senders.shown(subject.id), patienceMs),
    // What calls nobody has nothing to tell.
    brokenAt === null ? inTimeOrNull(deps.tally.read(subject.id, shownMinutes), patienceMs) : null,
  ]);
  const health = shown ?? unknown;
  const breaker = { state: health.status, since: health.since };
  const common = { ...said, breaker, hour };
  if (!configured) return { ...common, status: 'not_configured', since: null };
  if (pausedSince !== undefined) return { ...common, status: 'paused', since: pausedSince };
  if (brokenAt !== null) return { ...common, status: 'down', since: brokenAt };
  const since = health.since === null ? null : Date.parse(health.since);
  return { ...common, status: health.status, since };
};

const nobody = { account: null, displayPhoneNumber: null, brokenReason: null, brokenAt: null };

const ownSubject = (number: ConnectedNumber): Subject => ({
  ...{ channel: 'whatsapp', kind: 'own', id: number.phoneNumberId, configured: true },
  account: { id: number.accountId, name: number.accountName },
  displayPhoneNumber: number.displayPhoneNumber,
  qualityRating: number.qualityRating,
  ...{ brokenReason: number.brokenReason, brokenAt: number.brokenAt },
});

type Watching = { deps: ChannelDeps; sharedQuality: () => Promise<string | null> };

/** The shared number and the bot. */
const platformSubjects = async ({ deps, sharedQuality }: Watching): Promise<Subject[]> => {
  const { whatsappPhoneNumberId: id, whatsappAccessToken, telegramBotToken } = deps.config;
  const configured = id !== '' && whatsappAccessToken !== '';
  const shared: Subject = {
    ...{ ...nobody, channel: 'whatsapp', kind: 'shared', id, configured },
    qualityRating: configured ? await sharedQuality() : null,
  };
  const bot: Subject = {
    ...{ ...nobody, channel: 'telegram', kind: 'bot', id: 'telegram', qualityRating: null },
    configured: telegramBotToken !== '',
  };
  return [shared, bot];
};

/** Connected numbers that are broken, failed lately, or are paused. */
const watchedNumbers = async (deps: ChannelDeps): Promise<ConnectedNumber[]> => {
  const troubled = await inTimeOrNull(deps.tally.troubled(), patienceMs);
  const ids = [...new Set([...deps.pauses.numbers(), ...(troubled ?? [])])];
  const [first, found] = await Promise.all([
    deps.lookup.numbers({ limit: watchedMost }),
    deps.lookup.numbersOf(ids.slice(0, watchedMost)),
  ]);
  const broken = first.filter(({ brokenAt }) => brokenAt !== null);
  const known = new Set(broken.map(({ phoneNumberId: id }) => id));
  return [...broken, ...found.filter(({ phoneNumberId: id }) => !known.has(id))];
};

/** What stands for all: the shared number, the bot, and the numbers in trouble. @throws when an engine is away */
export const watchedChannels = async (
  deps: ChannelDeps,
  sharedQuality: () => Promise<string | null>,
): Promise<ChannelView[]> => {
  const [platform, own] = await Promise.all([
    platformSubjects({ deps, sharedQuality }),
    watchedNumbers(deps),
  ]);
  return Promise.all([...platform, ...own.map(ownSubject)].map((subject) => view(deps, subject)));
};

/**
 * The channels in parts: the first begins with the shared number, the bot and the numbers in trouble. `next` is the
 * number behind which the next part begins, null at the end. @throws when an engine is away
 */
export const readChannels = async (
  deps: ChannelDeps,
  sharedQuality: () => Promise<string | null>,
  filter: NumberFilter,
): Promise<{ items: ChannelView[]; next: string | null }> => {
  const isFirst = filter.before === undefined && filter.account === undefined;
  const [before, found] = await Promise.all([
    isFirst ? watchedChannels(deps, sharedQuality) : [],
    deps.lookup.numbers({ ...filter, limit: filter.limit + 1 }),
  ]);
  const part = found.slice(0, filter.limit);
  const shown = new Set(before.map(({ id }) => id));
  const rest = part.filter(({ phoneNumberId: id }) => !shown.has(id));
  const views = await Promise.all(rest.map((number) => view(deps, ownSubject(number))));
  const next = found.length > filter.limit ? (part.at(-1)?.phoneNumberId ?? null) : null;
  return { items: [...before, ...views], next };
};

/**
 * Pauses or resumes a channel, or one number of WhatsApp; it holds on every process within a second. Who waits for a
 * send over a paused channel gets the fallback or the error of the contract; nothing goes out. False when it stood so
 * already.
 */
export const setChannelPaused = async (
  {
    prices,
    revocations,
    pauses,
    clock,
  }: Pick<ChannelDeps, 'prices' | 'revocations' | 'pauses' | 'clock'>,
  given: { channel: ChannelName; numberId: string | undefined; paused: boolean },
): Promise<boolean> => {
  const { channel, numberId, paused } = given;
  const name = numberId === undefined ? channelSwitch(channel) : numberSwitch(numberId);
  const changed = await prices.setPaused(name, paused, clock.now());
  await revocations.announce();
  await pauses.refresh();
  return changed;
};
