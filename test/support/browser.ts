// Headless Chromium for tests of pages: found on this machine, or undefined, and then its tests are left out.
import { type Browser, chromium } from 'playwright-core';
import { findPrograms } from '../../docker/local/packages.ts';

/** Path of the browser. */
export const browserPath = (): string | undefined =>
  Object.values(findPrograms('chromium') ?? {})[0];

/** Starts the browser. @throws Error when there is none */
export const openBrowser = async (): Promise<Browser> => {
  const executablePath = browserPath();
  if (!executablePath) throw new Error('Chromium is not installed.');
  // Containers have no user namespaces for its sandbox, and a small /dev/shm.
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
};
