// The types of the TypeScript example, from the OpenAPI document. Run it to write them anew:
//   node test/support/client-types.ts
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import openapiTS from 'openapi-typescript';
import { openApiDocument } from '../../api/openapi.ts';
import { routes } from '../../api/routes.ts';

/** Where the types are kept. */
export const clientTypesFile = join(import.meta.dirname, '../../examples/typescript/tessera.d.ts');

/** The text of the types for an OpenAPI document. */
export const clientTypes = (document: object): Promise<string> =>
  openapiTS(document as Parameters<typeof openapiTS>[0], { exportType: true });

if (import.meta.main) writeFileSync(clientTypesFile, await clientTypes(openApiDocument(routes)));
