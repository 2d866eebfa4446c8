// Schemas in the API documentation: the type of a value, and tables of the fields of objects.

/** @import { Child } from '../../lib/dom.js' */
/** @import { Schema } from './document.js' */

import { fill, h } from '../../lib/dom.js';
import { prose } from './document.js';

/**
 * Returns the type of a value of this schema.
 * @param {Schema} schema
 * @returns {Child[]}
 */
export function typeOf(schema) {
  const name = referencedName(schema);
  if (name) return [h('a', { href: `#shape-${name}` }, name)];
  if (schema.enum) return alternatives(schema.enum, (value) => [h('code', {}, JSON.stringify(value))]);
  const options = schema.oneOf ?? schema.anyOf;
  if (options) return alternatives(options, typeOf);
  if (schema.type === undefined) return ['anything'];
  return alternatives([schema.type].flat(), (type) => namedType(type, schema));
}

/**
 * @param {string} type
 * @param {Schema} schema
 * @returns {Child[]}
 */
function namedType(type, schema) {
  if (type === 'array') return ['array of ', ...typeOf(schema.items ?? {})];
  if (type === 'object' && typeof schema.additionalProperties === 'object') return ['map of ', ...typeOf(schema.additionalProperties)];
  return [type === 'string' && schema.format === 'date-time' ? 'time (RFC 3339)' : type];
}

/**
 * Returns values with "or" between them.
 * @template T
 * @param {T[]} values
 * @param {(value: T) => Child[]} describe
 */
const alternatives = (values, describe) => values.flatMap((value, at) => [at > 0 && ' or ', ...describe(value)]);

/** @param {Schema} schema */
const referencedName = (schema) => schema.$ref?.split('/').at(-1) ?? null;

/**
 * Returns a schema of the appendix, which expands to its fields.
 * @param {string} name
 * @param {Schema} schema
 */
export function schemaView(name, schema) {
  const content = h('div', {});
  const details = h('details', { class: 'docs-part', id: `shape-${name}`, ontoggle: () => details.open && !content.firstChild && fill(content, ...fields(schema)) },
    h('summary', {}, h('code', {}, name), h('span', { class: 'soft' }, ...prose(schema.description ?? ''))), content);
  return details;
}

/** @param {Schema} schema */
function fields(schema) {
  /** @type {Schema[]} */
  const parts = schema.allOf ?? [schema];
  const bases = parts.map(referencedName).filter((name) => name !== null);
  const rows = parts.flatMap(({ properties = {}, required = [] }) => Object.entries(properties).map(([name, field]) => h('tr', {},
    h('th', { scope: 'row' }, h('code', {}, name)),
    h('td', {}, ...typeOf(field), required.includes(name) ? '' : ', optional'),
    h('td', {}, ...prose(describe(field))))));
  return [
    ...bases.map((name) => h('p', {}, 'All fields of ', h('a', { href: `#shape-${name}` }, name), ', and:')),
    rows.length > 0 ? h('table', {}, rows) : h('p', {}, ...typeOf(schema)),
  ];
}

/**
 * Returns the description of a field. If the field can be null, it is next to the reference.
 * @param {Schema} field
 * @returns {string}
 */
const describe = (field) => [field, ...(field.oneOf ?? [])].find(({ description }) => description)?.description ?? '';
