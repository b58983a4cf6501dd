// The account the playground sends as (lib/accounts/platform.ts); nobody can log in to it.
import type { Knex } from 'knex';
import { idBytes } from '../lib/kernel/ids.ts';

const id = idBytes('00000000-0000-7000-8000-000000000002');

export const up = async (knex: Knex): Promise<void> => {
  await knex('accounts').insert({
    id,
    email: 'playground@tessera.invalid',
    email_key: 'playground@tessera.invalid',
    // A real hash, so that a login attempt takes as long as any other; there is no password for it.
    password_hash:
      '$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA',
    name: 'Playground',
    phone: '+10000000000',
    company: null,
    locale: 'en',
    status: 'active',
    billing_plan: 'per_message',
    tier: 'standard',
    created_at: 0,
  });
};

export const down = async (knex: Knex): Promise<void> => {
  await knex('accounts').where({ id }).delete();
};
