// Where the benchmark's receivers of webhooks are: one address of the loopback network each, so that each is an origin.

/** Endpoints that answer, and those beside them that do not. */
export const healthyCount = 180;
export const badCount = 150;

const hostOf = (kind: number, number: number): string =>
  `127.${kind}.${Math.floor(number / 250)}.${(number % 250) + 1}`;

export const healthyHost = (number: number): string => hostOf(11, number);
export const badHost = (number: number): string => hostOf(12, number);

/** All of them, as the setting takes them. */
export const allHosts = (): string =>
  [
    ...Array.from({ length: healthyCount }, (_, number) => healthyHost(number)),
    ...Array.from({ length: badCount }, (_, number) => badHost(number)),
  ]
    .map((host) => `${host}=*`)
    .join(',');
