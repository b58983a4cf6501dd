// API keys in their owner's hands (spec section 4, "Account").

import { type SecurityEntry, securityActions } from '../../lib/accounts/acts.ts';
import { idTime } from '../../lib/kernel/ids.ts';
import { plainLine } from '../../lib/kernel/plain-text.ts';
import {
  flag,
  list,
  nullable,
  object,
  oneOf,
  optional,
  text,
  withDefault,
} from '../../lib/kernel/schema.ts';
import type { IssuedKey } from '../../lib/keys/issue.ts';
import {
  createKey,
  keyStatus,
  listKeys,
  revokeKey,
  rotateKey,
  rotationGraceMs,
} from '../../lib/keys/manage.ts';
import { requireLastingKey, requireLiveRights } from '../../lib/keys/rights.ts';
import type { KeyRecord } from '../../lib/keys/rules.ts';
import { takeRead } from '../../lib/limits/reads.ts';
import { requireProof } from '../../lib/sessions/authenticate.ts';
import { actOf, changesOf } from '../acting.ts';
import { nullableTimestamp, page, timestamp, uuid } from '../fields.ts';
import { type Callers, route } from '../route.ts';

const tag = 'API keys';

const name = () =>
  plainLine().min(1).max(40).description('What the key is for, 1 to 40 characters.');
const mode = () => oneOf('live', 'test').description('live sends; test is the sandbox.');

const facts = {
  id: uuid().description('Id of the key; not a secret.'),
  name: name(),
  mode: mode(),
  prefix: text().description('How the key begins.').example('sk_live_tsr_'),
  last4: text().description('How it ends.').example('7Qx2'),
  made_by: nullable(uuid()).description(
    'Id of the key that made it, or was shown it by signup-secret; null: a session.',
  ),
  created_at: timestamp(),
};

const keyText = () => text().description('The key itself. Shown this once.');

const iso = (at: number | null): string | null => (at === null ? null : new Date(at).toISOString());

const factsView = (key: KeyRecord) => ({
  ...{ id: key.id, name: key.name, mode: key.mode, prefix: key.prefix, last4: key.last4 },
  made_by: key.madeByKey,
  created_at: new Date(key.createdAt).toISOString(),
});

const issuedView = ({ record, key }: IssuedKey) => ({ ...factsView(record), key });

/** What finding and revoking a key count by: a key that leaked takes nothing from who revokes it. */
const credentialOf = ({ account, session, keyId }: Callers['account']): string =>
  session?.id ?? keyId ?? account.id;

const listRoute = route({
  ...{ method: 'GET', path: '/v1/clients/keys', tag, auth: 'account' },
  summary: 'The keys of the account, newest first; ended ones for 30 days.',
  data: page(
    object({
      ...facts,
      last_used_at: nullableTimestamp().description('To the minute; null: never.'),
      expires_at: nullableTimestamp().description('Set once the key was rotated.'),
      status: oneOf('active', 'expiring', 'expired', 'revoked'),
    }),
  ),
  handle: async (app, request) => {
    await takeRead(app.reads, 'read', credentialOf(request));
    const now = app.clock.now();
    const items = (await listKeys(app, request.account.id)).map((key) => ({
      ...factsView(key),
      last_used_at: iso(key.lastUsedAt),
      expires_at: iso(key.expiresAt),
      status: keyStatus(key, now),
    }));
    return { items, next_before: null };
  },
});

const create = route({
  ...{ method: 'POST', path: '/v1/clients/keys', tag, auth: 'account' },
  summary: 'Makes a key; at most 20 live and 20 test ones.',
  errors: ['REAUTH_REQUIRED'],
  body: object({ name: name(), mode: optional(mode()) }),
  data: object({ ...facts, key: keyText() }),
  handle: async (app, request) => {
    const { account, session, keyMode, keyEnds, body } = request;
    const wanted = body.mode ?? 'live';
    if (wanted === 'live') requireLiveRights(keyMode);
    requireLastingKey(keyEnds);
    requireProof(session, app.clock.now());
    await takeRead(app.reads, 'key_change', changesOf(request));
    const { id: accountId } = account;
    const wish = { accountId, name: body.name, mode: wanted, act: actOf(request) };
    return issuedView(await createKey(app, wish));
  },
});

const rotate = route({
  ...{ method: 'POST', path: '/v1/clients/keys/rotate', tag, auth: 'account' },
  summary:
    'Replaces a key: the one named, else the one that makes the call, else (by session) the newest live one. ' +
    `The old key works for another ${rotationGraceMs / 3_600_000} hours.`,
  errors: ['NOT_FOUND', 'REAUTH_REQUIRED'],
  body: object({ id: optional(uuid().description('Id of the key to replace.')) }),
  data: object({
    ...facts,
    key: keyText(),
    previous_key_id: uuid(),
    previous_valid_until: timestamp(),
  }),
  handle: async (app, request) => {
    const { account, session, keyMode, keyId, keyEnds, body } = request;
    const id = body.id?.toLowerCase() ?? keyId;
    if (id !== keyId) requireLiveRights(keyMode);
    requireLastingKey(keyEnds);
    requireProof(session, app.clock.now());
    await takeRead(app.reads, 'key_change', changesOf(request));
    const act = actOf(request);
    const { issued, before } = await rotateKey(app, { accountId: account.id, id, act });
    return {
      ...issuedView(issued),
      previous_key_id: before.id,
      previous_valid_until: new Date(before.expiresAt).toISOString(),
    };
  },
});

const revokeAbout =
  'Keys know which key made them, by creating or by rotating. What a key made ends with it, whether it was made before ' +
  'or after the leak; the key that makes the call, and what that one made, stay. A key that ended before is found as long ' +
  'as a key that it made still works, and is NOT_FOUND otherwise.';

const changeShape = () =>
  object({
    at: timestamp(),
    action: oneOf(...securityActions),
    key_id: nullable(uuid()).description('The key that did it.'),
    subject_id: nullable(uuid()).description('The key it was done to, if any.'),
    settings: list(text()).description('Names of the settings it changed.'),
  });

const changeView = ({ id, action, credentialId, subjectId, changes }: SecurityEntry) => ({
  at: new Date(idTime(id)).toISOString(),
  action,
  key_id: credentialId,
  subject_id: subjectId,
  settings: changes.map(({ setting }) => setting),
});

const revoke = route({
  ...{ method: 'DELETE', path: '/v1/clients/keys/{id}', tag, auth: 'account' },
  summary: 'Ends a key at once, also one in its grace, and the keys that it made.',
  about: revokeAbout,
  errors: ['NOT_FOUND', 'REAUTH_REQUIRED'],
  params: object({ id: uuid().description('Id of the key.') }),
  query: object({
    keep_descendants: withDefault(
      flag().description('true: the keys that it made, and that these made, go on working.'),
      false,
    ),
  }),
  data: object({
    revoked: flag(),
    id: nullable(uuid()),
    descendants: list(object(facts)).description('Keys that ended with it.'),
    changes: list(changeShape()).description(
      'What it and its descendants changed in the last 30 days, newest first, at most 100.',
    ),
  }),
  handle: async (app, request) => {
    const { account, session, keyMode, keyId, keyEnds, params, query } = request;
    const id = params.id.toLowerCase();
    const now = app.clock.now();
    if (id !== keyId) {
      requireLiveRights(keyMode);
      requireLastingKey(keyEnds);
    }
    requireProof(session, now);
    await takeRead(app.reads, 'key_end', credentialOf(request));
    const { descendants, changes } = await revokeKey(app, {
      accountId: account.id,
      id,
      act: actOf(request),
      keepDescendants: query.keep_descendants,
    });
    return {
      revoked: true,
      id,
      descendants: descendants.map(factsView),
      changes: changes.map(changeView),
    };
  },
});

export const keyRoutes = [listRoute, create, rotate, revoke];
