// The parts of the OpenAPI document that the page shows, and the texts in it.

import { h } from '../../lib/dom.js';

/**
 * @typedef {{ [keyword: string]: any }} Schema A JSON schema.
 * @typedef {{ schema?: Schema, example?: any }} Content
 * @typedef {{ name: string, in: 'path' | 'query' | 'header', description: string, required: boolean, schema: Schema }} Parameter
 * @typedef {{ $ref?: string, description: string, content?: Record<string, Content> }} Answer
 */

/**
 * @typedef {object} Described
 * @property {string} operationId
 * @property {string[]} tags
 * @property {string} summary
 * @property {string} [description]
 * @property {Parameter[]} [parameters]
 * @property {{ description: string, content: Record<string, Content> }} [requestBody]
 * @property {Record<string, Answer>} responses
 * @property {Record<string, string[]>[]} [security]
 * @property {Schema} [x-frame] The schema of events.
 */

/**
 * @typedef {object} Document
 * @property {{ version: string, description: string }} info
 * @property {{ name: string, description: string }[]} tags
 * @property {Record<string, Record<string, Described>>} paths
 * @property {{ schemas: Record<string, Schema>, responses: Record<string, { description: string, content: Record<string, any> }>, securitySchemes: Record<string, { description: string }> }} components
 */

/** @typedef {Described & { id: string, method: string, path: string }} Operation */

/** The methods in the order in which they are shown. */
const METHODS = ['get', 'post', 'put', 'patch', 'delete'];

/**
 * Returns the chapters with their operations.
 * @param {Document} document
 */
export function chapters({ tags, paths }) {
  /** @type {Operation[]} */
  const all = Object.entries(paths).flatMap(([path, item]) => METHODS.filter((method) => method in item).map((method) => ({ ...item[method], id: item[method].operationId, method, path })));
  return tags.map(({ name, description }) => ({ name, description, operations: all.filter((operation) => operation.tags[0] === name) }));
}

/**
 * Returns a text in which words in backticks are code.
 * @param {string} text
 */
export const prose = (text) => text.split('`').map((piece, at) => (at % 2 === 1 ? h('code', {}, piece) : piece));

/** @param {string} [text] */
export const paragraphs = (text = '') => text.split('\n\n').filter(Boolean).map((paragraph) => h('p', {}, ...prose(paragraph)));
