// The account of the service itself: in its name codes go to the owners of accounts. Migration 0007 makes it.

/** A UUIDv7 of the year 1970: no account can have it by chance. */
export const platformAccountId = '00000000-0000-7000-8000-000000000001';
