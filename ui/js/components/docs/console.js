// The console of an operation: a form with its parameters and its body, the command that sends the same request, and the response.
// Requests have the credentials of the page.

/** @import { Document, Operation, Parameter } from './document.js' */

import * as api from '../../lib/api.js';
import * as prefs from '../../lib/prefs.js';
import { copy } from '../../lib/clipboard.js';
import { fill, h } from '../../lib/dom.js';
import { confirm } from '../../lib/feedback.js';
import { count, size } from '../../lib/format.js';
import { icon } from '../../lib/icons.js';
import { serverPath } from '../../lib/paths.js';

/** The maximum length of a body that is shown. */
const MAX_SHOWN = 100_000;
/** Types of content that are shown as text. */
const TEXT = /^(?:text\/|application\/(?:[\w.+-]*\+)?json|message\/)/u;
const SAMPLE = 'From: Ann <ann@example.org>\nTo: bob@example.org\nSubject: Hello\n\nHello!\n';

/** @typedef {{ url: string, options: { method: string, headers: Record<string, string>, body?: string } }} Prepared */

/**
 * @param {Operation} operation
 * @param {Document} document
 * @param {AbortSignal} left Aborted when the page is left.
 */
export function consoleView(operation, document, left) {
  const { method, parameters = [], requestBody, responses } = operation;
  const fields = parameters.filter(({ name }) => name !== 'If-None-Match').map((parameter) => ({ parameter, input: field(parameter, operation, document) }));
  const types = Object.keys(requestBody?.content ?? {});
  const type = h('select', { class: 'field', 'aria-label': 'Content type', hidden: types.length < 2 }, types.map((each) => h('option', {}, each)));
  const body = h('textarea', { class: 'field mono', 'aria-label': 'Request body', rows: 6, spellcheck: 'false', hidden: types.length === 0 });
  const command = h('pre', { tabindex: 0, 'aria-label': 'Command' });
  const result = h('div', { class: 'console-result', 'aria-live': 'polite' });
  const send = h('button', { class: 'button main', type: 'submit' }, 'Send request');
  const cancel = h('button', { class: 'button', type: 'button', hidden: true, onclick: () => request.abort() }, 'Cancel');
  let request = new AbortController();
  left.addEventListener('abort', () => request.abort());
  // A server with a login needs credentials in the command.
  let credentials = '';

  const prepare = () => prepared(operation, fields.map(({ parameter, input }) => ({ parameter, value: input.value })), types.length > 0 ? { type: type.value, text: body.value } : null);
  const draw = () => (command.textContent = toCommand(prepare(), responses, credentials));
  const proposeBody = () => {
    const example = requestBody?.content[type.value]?.example;
    body.value = example === undefined ? (type.value === 'message/rfc822' ? SAMPLE : '') : JSON.stringify(example, null, 2);
    draw();
  };
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const { url, options } = prepare();
    if (deletes(operation) && !(await confirm({ title: 'Delete messages?', text: `The request ${options.method} ${url} deletes messages. This cannot be undone.`, action: 'Send request', danger: true }))) return;
    request.abort();
    const { signal } = request = new AbortController();
    cancel.hidden = false;
    fill(result, h('p', { class: 'soft' }, 'Waiting for the response…'));
    try {
      const startedAt = performance.now();
      const response = await fetch(url, { ...options, signal, cache: 'no-store' });
      const content = await response.blob();
      fill(result, ...(await describe(response, content, performance.now() - startedAt)));
    } catch (error) {
      if (request.signal !== signal) return;
      fill(result, h('p', { class: 'note bad' }, icon('warning'), signal.aborted ? 'The request was cancelled.' : `The request failed: ${api.sentence(error)}.`));
    } finally {
      if (request.signal === signal) cancel.hidden = true;
    }
  };

  api.about().then(({ locked }) => {
    if (locked) credentials = "-u 'USER:PASSWORD' ";
    draw();
  }, () => {});
  type.addEventListener('change', proposeBody);
  proposeBody();
  // A WebSocket and a stream of events never end, so only the command is shown.
  const isEndless = '101' in responses || 'text/event-stream' in (responses['200']?.content ?? {});
  return h('form', { class: 'console', 'data-method': method, onsubmit: submit, oninput: draw },
    fields.length > 0 && h('div', { class: 'console-fields' }, fields.map(({ parameter: { name, required }, input }) => h('label', {}, h('span', {}, h('code', {}, name), required && h('span', { class: 'soft' }, ' required')), input))),
    type, body,
    h('div', { class: 'console-command' }, command, h('button', { class: 'button plain small', type: 'button', title: 'Copy the command', 'aria-label': 'Copy the command', onclick: () => copy(command.textContent ?? '') }, icon('copy'))),
    !isEndless && h('div', { class: 'row' }, send, cancel),
    result);
}

/**
 * Creates the field of a parameter, with a value that works for most servers.
 * @param {Parameter} parameter
 * @param {Operation} operation
 * @param {Document} document
 * @returns {HTMLInputElement | HTMLSelectElement}
 */
function field({ name, required, schema, in: place }, { method, path }, { components }) {
  const { enum: values, type } = schema.$ref ? components.schemas[schema.$ref.split('/').at(-1)] ?? {} : schema;
  const choices = values ?? (type === 'boolean' ? ['true', 'false'] : null);
  if (choices) return h('select', { class: 'field', name }, !required && h('option', { value: '' }, '–'), choices.map((/** @type {unknown} */ value) => h('option', {}, String(value))));
  // DELETE does not accept `latest`, so that a client does not delete another message than intended.
  const hasLatest = method !== 'delete' && /\/(?:mailbox|vattach|dattach)\/|\/messages\//u.test(path);
  /** @type {Record<string, string>} */
  const examples = { name: prefs.recent()[0] ?? 'test', id: hasLatest ? 'latest' : '', index: '0', file: 'file' };
  return h('input', { class: 'field', name, type: 'text', value: place === 'path' ? examples[name] ?? '' : '', required, autocomplete: 'off', autocapitalize: 'none', spellcheck: 'false' });
}

/** @param {Operation} operation */
const deletes = ({ method, path }) => method === 'delete' || path.endsWith('/delete');

/**
 * Returns the request. Parameters without a value are omitted.
 * @param {Operation} operation
 * @param {{ parameter: Parameter, value: string }[]} values
 * @param {{ type: string, text: string } | null} body
 * @returns {Prepared}
 */
function prepared({ method, path }, values, body) {
  const of = (/** @type {Parameter['in']} */ place) => values.filter(({ parameter, value }) => parameter.in === place && value !== '').map(({ parameter, value }) => [parameter.name, value]);
  const inPath = Object.fromEntries(of('path'));
  const segments = path.split('/').slice(1).map((segment) => segment.replace(/^\{(.*)\}$/u, (whole, name) => inPath[name] ?? whole));
  const query = new URLSearchParams(of('query')).toString();
  const headers = { ...Object.fromEntries(of('header')), ...(body && { 'Content-Type': body.type }) };
  return { url: serverPath(...segments) + (query && `?${query}`), options: { method: method.toUpperCase(), headers, body: body?.text } };
}

/**
 * Returns the command that sends a request.
 * @param {Prepared} request
 * @param {Operation['responses']} responses
 * @param {string} credentials
 */
function toCommand({ url, options: { method, headers, body } }, responses, credentials) {
  const quoted = (/** @type {string} */ text) => `'${text.replaceAll("'", "'\\''")}'`;
  if ('101' in responses && !('200' in responses)) return `websocat ${quoted(`${location.origin.replace(/^http/u, 'ws')}${url}`)}`;
  const parts = [
    `curl ${'text/event-stream' in (responses['200']?.content ?? {}) ? '-N ' : ''}${method === 'GET' ? '' : `-X ${method} `}${credentials}${quoted(location.origin + url)}`,
    ...Object.entries(headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
    ...(body === undefined ? [] : [`--data-raw ${quoted(body)}`]),
  ];
  return parts.join(' \\\n  ');
}

/**
 * @param {Response} response
 * @param {Blob} content
 * @param {number} millis
 */
async function describe(response, content, millis) {
  const type = response.headers.get('Content-Type') ?? '';
  const headers = [...response.headers].map(([name, value]) => `${name}: ${value}`).join('\n');
  const text = TEXT.test(type) ? await content.text() : null;
  const shown = text === null ? '' : pretty(text.slice(0, MAX_SHOWN), type);
  return [
    h('p', { class: 'console-status' }, h('strong', { class: response.ok ? 'good' : 'bad' }, `${response.status} ${response.statusText}`.trim()),
      h('span', { class: 'soft number' }, `${count(Math.round(millis))} ms, ${size(content.size)}`), h('span', { class: 'spread' }),
      text !== null && text !== '' && h('button', { class: 'button plain small', type: 'button', onclick: () => copy(text) }, icon('copy'), 'Copy body')),
    h('details', { class: 'outgoing' }, h('summary', {}, 'Headers'), h('pre', { tabindex: 0, 'aria-label': 'Response headers' }, headers)),
    shown !== '' && h('pre', { class: 'console-body', tabindex: 0, 'aria-label': 'Response body' }, shown),
    text === null && content.size > 0 && h('p', { class: 'soft' }, `The body is not text (${type || 'no content type'}) and is not shown.`),
    text !== null && text.length > MAX_SHOWN && h('p', { class: 'soft' }, `The first ${count(MAX_SHOWN)} characters are shown.`),
  ];
}

/**
 * Returns JSON with line breaks, and other texts unchanged.
 * @param {string} text
 * @param {string} type
 */
function pretty(text, type) {
  try {
    return /json/u.test(type) ? JSON.stringify(JSON.parse(text), null, 2) : text;
  } catch {
    return text;
  }
}
