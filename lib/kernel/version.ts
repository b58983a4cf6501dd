// The version of Tessera, as processes, webhooks and documents name it.

export const version = '0.1.0';
