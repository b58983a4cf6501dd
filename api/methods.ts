// Which methods a path takes.
import type { Route } from './route.ts';

export type MethodsAt = {
  /** Methods of a path that is written out in the routes; none for every other path. */
  literal(path: string): readonly string[];
  /** Methods of the routes whose template the path fits. */
  matching(path: string): readonly string[];
};

const unique = (routes: readonly Pick<Route, 'method'>[]): readonly string[] => [
  ...new Set(routes.map(({ method }) => method)),
];

/** The router takes a path with a slash at its end, too. */
const withoutSlash = (path: string): string => path.replace(/(.)\/$/, '$1');

/** Looks methods up as the router finds routes: case counts. */
export const createMethodsAt = (routes: readonly Route[]): MethodsAt => {
  const literal = new Map<string, readonly string[]>();
  for (const [path, own] of Map.groupBy(routes, (route) => route.path)) {
    if (!path.includes('{')) literal.set(path, unique(own));
  }
  const templates = routes.map((route) => ({
    method: route.method,
    pattern: new RegExp(`^${route.path.replace(/\{\w+\}/g, '[^/]+')}$`),
  }));
  return {
    literal: (path) => literal.get(withoutSlash(path)) ?? [],
    matching: (path) => unique(templates.filter(({ pattern }) => pattern.test(withoutSlash(path)))),
  };
};
