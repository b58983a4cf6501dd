// What can go wrong with a publish: three ways in which nothing was queued, and one in which nobody knows.

/** Not connected, blocked or overloaded: nothing was sent. */
export class BrokerUnavailable extends Error {
  override name = 'BrokerUnavailable';
}

/** The queue has reached its limit and the broker refused the message. */
export class QueueFull extends Error {
  override name = 'QueueFull';
}

/** No queue is bound for the message. */
export class Unroutable extends Error {
  override name = 'Unroutable';
}

/** The broker did not say whether it has the message. */
export class OutcomeUnknown extends Error {
  override name = 'OutcomeUnknown';
}
