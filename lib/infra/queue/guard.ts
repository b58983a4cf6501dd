// Channels that are watched: one that ends by itself takes its connection with it, so that everything is set up anew.
import type { Channel, ChannelModel } from 'amqplib';
import type { Log } from '../../kernel/log.ts';
import { describeError } from '../../kernel/redact.ts';
import { closeModel } from './connection.ts';

/** Watches a channel; the function it answers says that the end of the channel is wanted from now on. */
export type Guard = (model: ChannelModel, channel: Channel, role: string) => () => void;

export type GuardOptions = {
  log: Log;
  onDeath(): void;
  /** Sees every channel when it is opened: tests provoke its errors. */
  onChannel?: ((role: string, channel: Channel) => void) | undefined;
};

/** A process that merely logged the end of a channel would look healthy and consume nothing (reference 04 section 0.3). */
export const createGuard =
  ({ log, onDeath, onChannel }: GuardOptions): Guard =>
  (model, channel, role) => {
    let wanted = false;
    const release = (): void => {
      wanted = true;
      model.off('close', release);
    };
    model.once('close', release);
    channel.on('error', (error: unknown) =>
      log.warn({ channel: role, reason: describeError(error) }, 'broker channel failed'),
    );
    // An error in a listener of ours: without this one amqplib would throw it into its own reader.
    channel.on('handler-error', (error: unknown) => {
      log.error({ channel: role, reason: describeError(error) }, 'broker listener failed');
      if (!wanted) void closeModel(model);
    });
    channel.on('close', () =>
      // The channels of a connection that ends are closed just before it says so itself.
      queueMicrotask(() => {
        if (wanted) return;
        onDeath();
        void closeModel(model);
      }),
    );
    onChannel?.(role, channel);
    return release;
  };
