// How many bodies are waited for at once. At a limit the body that has been waited for longest gives way: a body that
// comes at once is never it, however many others do not come.

export type PlaceLimits = {
  /** Bodies in all. */
  atOnce: number;
  /** Bodies of callers without a valid credential. */
  strangers: number;
  /** Bodies of such callers from one source. */
  perSource: number;
};

/** The limit at which a body gave way. */
export type BodyLimit = 'bodies' | 'bodies_of_strangers' | 'bodies_of_address';

/** A body that is waited for; `giveWay` ends the wait and leaves the place. */
export type Waiting = { trusted: boolean; source: string; giveWay(): void };

export type BodyPlaces<T> = {
  enter(body: T): void;
  /** Does nothing for a body that has no place. */
  leave(body: T): void;
};

const oldest = <T>(bodies: ReadonlySet<T>): T | undefined => bodies.values().next().value;

/**
 * The places of a process.
 * @param onRefused is told of each body that gives way
 */
export const createBodyPlaces = <T extends Waiting>(
  limits: PlaceLimits,
  onRefused: (limit: BodyLimit) => void,
): BodyPlaces<T> => {
  const trusted = new Set<T>();
  const strangers = new Set<T>();
  const bySource = new Map<string, Set<T>>();

  const refuse = (body: T | undefined, limit: BodyLimit): void => {
    if (body === undefined) return;
    onRefused(limit);
    body.giveWay();
  };
  const makeRoomForStranger = (source: string): void => {
    const own = bySource.get(source);
    if (own !== undefined && own.size >= limits.perSource) refuse(oldest(own), 'bodies_of_address');
    else if (strangers.size >= limits.strangers) refuse(oldest(strangers), 'bodies_of_strangers');
  };

  return {
    enter: (body) => {
      if (!body.trusted) makeRoomForStranger(body.source);
      if (trusted.size + strangers.size >= limits.atOnce) {
        refuse(oldest(strangers) ?? oldest(trusted), 'bodies');
      }
      if (body.trusted) {
        trusted.add(body);
        return;
      }
      strangers.add(body);
      const own = bySource.get(body.source) ?? new Set();
      bySource.set(body.source, own.add(body));
    },
    leave: (body) => {
      trusted.delete(body);
      if (!strangers.delete(body)) return;
      const own = bySource.get(body.source);
      own?.delete(body);
      if (own?.size === 0) bySource.delete(body.source);
    },
  };
};
