// Tracing as the settings say: none by default, and then not even its packages are loaded.
import type { Config } from '../kernel/config.ts';
import { noTracing, type Tracing } from '../kernel/tracing.ts';
import { version } from '../kernel/version.ts';

type Wanted = Pick<Config, 'otlpEndpoint' | 'tracePercent'>;

/** The tracing of a process. */
export const openTracing = async (
  { otlpEndpoint, tracePercent }: Wanted,
  processName: string,
): Promise<Tracing> => {
  if (otlpEndpoint === '') return noTracing;
  const { createOtelTracing } = await import('./otel.ts');
  const share = tracePercent / 100;
  return createOtelTracing({ endpoint: otlpEndpoint, share, processName, version });
};
