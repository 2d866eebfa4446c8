// An operation in the API documentation: its parameters, its body, its responses, and a console.

/** @import { Answer, Content, Document, Operation } from './document.js' */

import { fill, h } from '../../lib/dom.js';
import { consoleView } from './console.js';
import { paragraphs, prose } from './document.js';
import { typeOf } from './schema.js';

/**
 * Returns an operation, which expands to its description.
 * @param {Operation} operation
 * @param {Document} document
 * @param {AbortSignal} signal Aborted when the page is left.
 */
export function operationView(operation, document, signal) {
  const { id, method, path, summary } = operation;
  const content = h('div', {});
  const details = h('details', { class: 'docs-part', id, ontoggle: () => details.open && !content.firstChild && fill(content, ...describe(operation, document, signal)) },
    h('summary', {}, h('span', { class: `method ${method}` }, method), h('code', { class: 'docs-path' }, ...breakable(path)), h('span', { class: 'soft' }, ...prose(summary))), content);
  return details;
}

/**
 * Returns a path that can be broken into lines, because it can be longer than a narrow window is wide.
 * @param {string} path
 */
const breakable = (path) => path.split(/(?<=\/)/u).flatMap((segment) => [segment, h('wbr')]);

/**
 * @param {Operation} operation
 * @param {Document} document
 * @param {AbortSignal} signal
 */
function describe(operation, document, signal) {
  const { description, parameters = [], requestBody, security = [] } = operation;
  const scope = security.flatMap((way) => Object.values(way)).find((scopes) => scopes.length > 0)?.[0];
  return [
    ...paragraphs(description),
    scope && h('p', { class: 'soft' }, 'If authentication is enabled, this requires the scope ', h('code', {}, scope), '.'),
    parameters.length > 0 && h('h3', {}, 'Parameters'),
    parameters.length > 0 && h('table', {}, parameters.map((parameter) => h('tr', {},
      h('th', { scope: 'row' }, h('code', {}, parameter.name)),
      h('td', {}, parameter.in, ', ', ...typeOf(parameter.schema), parameter.required && parameter.in !== 'path' ? ', required' : ''),
      h('td', {}, ...prose(parameter.description ?? ''))))),
    requestBody && h('h3', {}, 'Body'),
    requestBody && h('p', {}, ...prose(requestBody.description ?? '')),
    ...Object.entries(requestBody?.content ?? {}).map(([type, content]) => h('p', {}, ...contentType(type, content))),
    h('h3', {}, 'Console'),
    consoleView(operation, document, signal),
    h('h3', {}, 'Responses'),
    ...responses(operation),
  ];
}

/** @param {Operation} operation */
function responses({ responses: all, 'x-frame': frame }) {
  const own = Object.entries(all).filter(([, answer]) => !answer.$ref);
  const refusals = Object.entries(all).filter(([, answer]) => answer.$ref);
  return [
    ...own.flatMap(([status, answer]) => response(status, answer)),
    h('p', { class: 'soft' }, 'Errors: ', ...refusals.flatMap(([status], at) => [at > 0 && ', ', h('a', { href: `#refusal-${status}` }, status)]), '.'),
    frame && h('p', {}, 'The schema of events is ', ...typeOf(frame), '.'),
  ];
}

/**
 * @param {string} status
 * @param {Answer} answer
 */
function response(status, { description, content = {} }) {
  return [
    h('p', {}, h('strong', {}, status), ' ', ...prose(description), ...Object.entries(content).flatMap(([type, each]) => [' ', ...contentType(type, each)])),
    ...Object.values(content).filter(({ example }) => example !== undefined).map(({ example }) => h('pre', { tabindex: 0, 'aria-label': `Example of the response ${status}` }, JSON.stringify(example, null, 2))),
  ];
}

/**
 * @param {string} type
 * @param {Content} content
 */
function contentType(type, { schema }) {
  return [h('code', {}, type), ...(schema && schema.type !== 'string' ? [': ', ...typeOf(schema)] : [])];
}
