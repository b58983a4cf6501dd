// The account of the service itself (lib/accounts/platform.ts); nobody can log in to it.
import type { Knex } from 'knex';
import { idBytes } from '../lib/kernel/ids.ts';

const id = idBytes('00000000-0000-7000-8000-000000000001');

export const up = async (knex: Knex): Promise<void> => {
  await knex('accounts').insert({
    id,
    email: 'platform@tessera.invalid',
    email_key: 'platform@tessera.invalid',
    // A real hash, so that a login attempt takes as long as any other; its password was random and is gone.
    password_hash:
      '$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA',
    name: 'Tessera',
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
