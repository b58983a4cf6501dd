// The API about itself.
import { rawRoute } from '../route.ts';

/** The OpenAPI document; `write` makes it from the route values, once. */
export const metaRoutes = (write: () => string) => {
  let document: string | undefined;
  return [
    rawRoute({
      ...{ method: 'GET', path: '/openapi.json', tag: 'About', errors: [], maxBodyBytes: 0 },
      summary: 'This API as an OpenAPI 3.1 document.',
      produces: 'application/json',
      handle: () => {
        document ??= write();
        return Promise.resolve({ status: 200, body: document });
      },
    }),
  ];
};
