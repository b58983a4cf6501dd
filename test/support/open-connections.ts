// The connections of a listener under test that is to meet no limit of them.
import { type Connections, createConnections } from '../../api/connections.ts';

/** Connections without a bound that a test could reach. */
export const openConnections = (): Connections =>
  createConnections({ max: 10_000, maxPerSource: undefined }, () => undefined);
