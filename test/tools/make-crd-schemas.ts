// `npm exec -- node test/tools/make-crd-schemas.ts`: makes fixtures/schemas/prometheus-operator-*/ from the
// definitions in prometheus-operator's Go module, as kubeconform reads them. Needs Go.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { downloadDefinition, OPERATOR_DEFINITIONS, OPERATOR_VERSION } from './definitions.ts';

/** Where they are. */
export const OPERATOR_SCHEMAS = join(
  import.meta.dirname,
  '../../fixtures/schemas',
  `prometheus-operator-${OPERATOR_VERSION}`,
);

/** A part of a JSON schema. */
export type Schema = { readonly [key: string]: unknown };

/** A schema as kubeconform needs it: no descriptions, and no field that is not named. */
export function tidy(schema: Schema): Schema {
  if (schema['x-kubernetes-int-or-string'] === true) return { anyOf: [{ type: 'integer' }, { type: 'string' }] };
  const entries = Object.entries(schema)
    .filter(([key]) => key !== 'description' && key !== 'default' && !key.startsWith('x-kubernetes-'))
    .map(([key, value]): [string, unknown] => {
      if (key === 'properties') {
        return [
          key,
          Object.fromEntries(Object.entries(value as Schema).map(([name, each]) => [name, tidy(each as Schema)])),
        ];
      }
      return [key, key === 'items' || key === 'additionalProperties' ? tidy(value as Schema) : value];
    });
  const isOpen = schema['x-kubernetes-preserve-unknown-fields'] === true || 'additionalProperties' in schema;
  return Object.fromEntries(
    'properties' in schema && !isOpen ? [...entries, ['additionalProperties', false]] : entries,
  );
}

export function convert(definition: string): { name: string; text: string } {
  const { spec } = parse(definition);
  const [version] = spec.versions;
  const schema = tidy(version.schema.openAPIV3Schema);
  const properties = {
    ...(schema['properties'] as Schema),
    apiVersion: { enum: [`${spec.group}/${version.name}`] },
    kind: { enum: [spec.names.kind] },
    metadata: { type: 'object' },
  };
  return {
    name: `${spec.names.singular}-${spec.group.split('.')[0]}-${version.name}.json`,
    text: `${JSON.stringify({ ...schema, properties })}\n`,
  };
}

if (import.meta.main) {
  mkdirSync(OPERATOR_SCHEMAS, { recursive: true });
  for (const definition of OPERATOR_DEFINITIONS) {
    const { name, text } = convert(downloadDefinition(definition));
    writeFileSync(join(OPERATOR_SCHEMAS, name), text);
    process.stdout.write(`${join(OPERATOR_SCHEMAS, name)}\n`);
  }
}
