// The connections of a listener: how many it holds, in all and from one source, and which one is closed at the limit.
import type { Socket } from 'node:net';
import { sourceOf } from './source.ts';

export type ConnectionLimits = {
  /** Connections in all. */
  max: number;
  /** Connections from one IPv4 address or IPv6 /64; undefined where the peer is a proxy. */
  maxPerSource: number | undefined;
};

/** The limit at which a connection was closed. */
export type ConnectionLimit = 'connections' | 'connections_of_address' | 'requests_of_connection';

export type Connections = {
  /**
   * Takes a new connection in. At a limit the connection that has been idle or half-read for longest is closed for it;
   * those whose caller never showed a valid credential go first. Answers false when all are being answered: then the
   * new one is to be refused.
   */
  admit(socket: Socket): boolean;
  /** Counts a request that is to be answered. Answers false when too many of its connection are: then it is closed. */
  queue(socket: Socket): boolean;
  /** The answer to one of them is out, or never will be. */
  unqueue(socket: Socket): void;
  /** A request on it has arrived as a whole: it is not closed until it is answered. */
  begin(socket: Socket): void;
  /** That request is answered. */
  end(socket: Socket): void;
  /** A caller on it showed a valid credential. */
  trust(socket: Socket): void;
  size(): number;
};

type Connection = {
  socket: Socket;
  source: string;
  trusted: boolean;
  /** Whole requests that are not answered yet; several when they are pipelined. */
  requests: number;
  /** Requests whose answers are not out yet. */
  queued: number;
};

/**
 * Requests that one connection may send ahead of their answers. All that come in one piece are begun before anything
 * else is done: thousands would keep every other client waiting. Proxies and nearly all clients send one at a time.
 */
const maxQueued = 16;

/** Connections counted together, and those of them that may be closed, the longest idle first. */
type Group = { size: number; strangers: Set<Connection>; trusted: Set<Connection> };

const newGroup = (): Group => ({ size: 0, strangers: new Set(), trusted: new Set() });

const idleOf = (group: Group, { trusted }: Connection): Set<Connection> =>
  trusted ? group.trusted : group.strangers;

const longestIdle = ({ strangers, trusted }: Group): Connection | undefined =>
  strangers.values().next().value ?? trusted.values().next().value;

type Idle = { set(connection: Connection): void; unset(connection: Connection): void };

/** What a connection does once it is taken in. */
const following = (
  bySocket: ReadonlyMap<Socket, Connection>,
  idle: Idle,
): Pick<Connections, 'unqueue' | 'begin' | 'end' | 'trust'> => ({
  unqueue: (socket) => {
    const connection = bySocket.get(socket);
    if (connection !== undefined) connection.queued--;
  },
  begin: (socket) => {
    const connection = bySocket.get(socket);
    if (connection === undefined) return;
    connection.requests++;
    idle.unset(connection);
  },
  end: (socket) => {
    const connection = bySocket.get(socket);
    if (connection === undefined) return;
    connection.requests--;
    if (connection.requests === 0) idle.set(connection);
  },
  trust: (socket) => {
    const connection = bySocket.get(socket);
    if (connection === undefined || connection.trusted) return;
    idle.unset(connection);
    connection.trusted = true;
    if (connection.requests === 0) idle.set(connection);
  },
});

/**
 * Counts the connections of one listener.
 * @param onClosed is told of each connection that is closed or refused at a limit
 */
export const createConnections = (
  { max, maxPerSource = Number.POSITIVE_INFINITY }: ConnectionLimits,
  onClosed: (limit: ConnectionLimit) => void,
): Connections => {
  const bySocket = new Map<Socket, Connection>();
  const all = newGroup();
  const bySource = new Map<string, Group>();

  const groupsOf = ({ source }: Connection): readonly Group[] => {
    const own = bySource.get(source);
    return own === undefined ? [all] : [all, own];
  };
  const setIdle = (connection: Connection): void => {
    for (const group of groupsOf(connection)) idleOf(group, connection).add(connection);
  };
  const unsetIdle = (connection: Connection): void => {
    for (const group of groupsOf(connection)) idleOf(group, connection).delete(connection);
  };

  const forget = (connection: Connection): void => {
    if (!bySocket.delete(connection.socket)) return;
    unsetIdle(connection);
    for (const group of groupsOf(connection)) group.size--;
    if (bySource.get(connection.source)?.size === 0) bySource.delete(connection.source);
  };

  const makeRoom = (group: Group, limit: ConnectionLimit): boolean => {
    onClosed(limit);
    const victim = longestIdle(group);
    if (victim === undefined) return false;
    forget(victim);
    victim.socket.destroy();
    return true;
  };

  const hasRoom = (source: string): boolean => {
    const own = bySource.get(source);
    if (own !== undefined && own.size >= maxPerSource) {
      return makeRoom(own, 'connections_of_address');
    }
    return all.size < max || makeRoom(all, 'connections');
  };

  return {
    admit: (socket) => {
      const source = sourceOf(socket.remoteAddress ?? '');
      if (!hasRoom(source)) return false;
      if (!bySource.has(source)) bySource.set(source, newGroup());
      const connection: Connection = { socket, source, trusted: false, requests: 0, queued: 0 };
      bySocket.set(socket, connection);
      for (const group of groupsOf(connection)) group.size++;
      setIdle(connection);
      socket.once('close', () => forget(connection));
      return true;
    },
    queue: (socket) => {
      const connection = bySocket.get(socket);
      // It was closed, and this came with what was read before.
      if (connection === undefined) return false;
      connection.queued++;
      if (connection.queued <= maxQueued) return true;
      onClosed('requests_of_connection');
      forget(connection);
      socket.destroy();
      return false;
    },
    ...following(bySocket, { set: setIdle, unset: unsetIdle }),
    size: () => all.size,
  };
};
