// The accounts of the service itself, which nobody can log in to. Migrations 0007 and 0019 make them.

/** In its name codes go to the owners of accounts. A UUIDv7 of the year 1970: no account can have it by chance. */
export const platformAccountId = '00000000-0000-7000-8000-000000000001';

/** The account in whose name the playground sends; apart, so that nobody's guesses there touch an owner's code. */
export const playgroundAccountId = '00000000-0000-7000-8000-000000000002';

/** Whether an account is the service's own: never charged nor asked for credit. */
export const isOwnAccount = (accountId: string): boolean =>
  accountId === platformAccountId || accountId === playgroundAccountId;
