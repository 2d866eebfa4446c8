// <message-html-check>: which mail clients support the HTML and CSS of a message: the score, the clients, and the features with the
// lines that use them. The user can select the clients that count.

/** @import { HtmlCheck, HtmlCheckFeature, HtmlCheckScore, ShownMessage } from '../../types.js' */

import * as api from '../../lib/api.js';
import * as prefs from '../../lib/prefs.js';
import { fill, h } from '../../lib/dom.js';
import { plural } from '../../lib/format.js';
import { icon } from '../../lib/icons.js';
import { scroller } from './controls.js';
import { LazyPanel } from './lazy-panel.js';
import { tableRow, withShowMore } from './show-more.js';

const FIRST_FEATURES = 25;
const FIRST_CLIENTS = 12;

/** The number of lines that are named; the others are counted. */
const MAX_LINES = 8;

/** The name of the preference with the families of the selected clients. */
const CLIENTS = 'check.clients';

/** The lowest percentages of a good and of a fair result. */
const GOOD = 90;
const FAIR = 70;

/** The results of shown messages. @type {WeakMap<ShownMessage, Promise<HtmlCheck>>} */
const results = new WeakMap();

/**
 * Returns the result of a message. It is requested once.
 * @param {ShownMessage} message
 */
export function checkOf(message) {
  const known = results.get(message);
  if (known) return known;
  const loading = api.htmlCheck(message.id);
  results.set(message, loading);
  loading.catch(() => results.delete(message));
  return loading;
}

/**
 * Returns the result for the selected clients as the badge of a tab.
 * @param {HtmlCheck} check
 */
export function scoreBadge(check) {
  const { supported } = selected(check).score;
  return { text: `${Math.floor(supported)}%`, kind: grade(supported), title: `${percent(supported)} supported by mail clients` };
}

/** @extends {LazyPanel<HtmlCheck>} */
export class MessageHtmlCheck extends LazyPanel {
  /** @param {ShownMessage} message */
  constructor(message) {
    super(() => checkOf(message), (check) => [draw(check)]);
  }
}

/** @param {HtmlCheck} check */
function draw(check) {
  const body = scroller('HTML check', 'message-html-check');
  const result = h('div', { class: 'check-result' });
  const update = () => fill(result, ...resultOf(selected(check)));
  fill(body, check.clients.length > 0 && clientFilter(check, update), result,
    h('p', { class: 'soft check-source' }, `Data of ${check['data-date']}: `, h('a', { href: 'https://www.caniemail.com/', target: '_blank', rel: 'noopener noreferrer' }, 'Can I email'), '. No request leaves your browser before you open a link.'));
  update();
  return body;
}

/**
 * Returns buttons that select families of clients. None means all.
 * @param {HtmlCheck} check
 * @param {() => void} update
 */
function clientFilter({ clients }, update) {
  const names = new Map(clients.map((client) => [client.family, client['family-name']]));
  const buttons = [...names].sort(([, a], [, b]) => a.localeCompare(b)).map(([family, name]) => h('button', { class: 'button small', type: 'button', 'data-family': family, onclick: () => {
    const chosen = families();
    choose(chosen.includes(family) ? chosen.filter((one) => one !== family) : [...chosen, family]);
  } }, name));
  const all = h('button', { class: 'button small', type: 'button', onclick: () => choose([]) }, 'All clients');
  const mark = () => {
    const chosen = families().filter((family) => names.has(family));
    all.setAttribute('aria-pressed', String(chosen.length === 0));
    for (const button of buttons) button.setAttribute('aria-pressed', String(chosen.includes(button.dataset.family ?? '')));
  };
  const choose = (/** @type {string[]} */ chosen) => {
    prefs.write(CLIENTS, chosen);
    mark();
    update();
  };
  mark();
  return h('div', { class: 'check-filter', role: 'group', 'aria-label': 'Mail clients that count' }, all, buttons);
}

/** Returns the selected families. */
const families = () => prefs.read(CLIENTS, /** @type {string[]} */ ([])).filter((family) => typeof family === 'string');

/**
 * Returns the result for the selected clients, with scores as the server calculates them.
 * @param {HtmlCheck} check
 * @returns {HtmlCheck}
 */
function selected(check) {
  const chosen = new Set(families().filter((family) => check.clients.some((client) => client.family === family)));
  if (chosen.size === 0) return check;
  const features = check.features.map((feature) => {
    const clients = feature.clients.filter(({ family }) => chosen.has(family));
    return { ...feature, clients, score: shares(clients) };
  });
  const highest = (/** @type {keyof HtmlCheckScore} */ name) => features.reduce((most, { count, score }) => Math.max(most, score[name] * Math.min(1, count / check.elements)), 0);
  const [partial, unsupported] = [highest('partial'), highest('unsupported')];
  return { ...check, features, clients: check.clients.filter(({ family }) => chosen.has(family)), score: { supported: Math.max(0, 100 - partial - unsupported), partial, unsupported } };
}

/**
 * Returns the score of a feature. A client that was not tested counts as partial support.
 * @param {HtmlCheckFeature['clients']} clients
 * @returns {HtmlCheckScore}
 */
function shares(clients) {
  if (clients.length === 0) return { supported: 100, partial: 0, unsupported: 0 };
  const share = (/** @type {string} */ wanted) => (100 * clients.filter(({ support }) => support === wanted).length) / clients.length;
  const [supported, unsupported] = [share('yes'), share('no')];
  return { supported, partial: 100 - supported - unsupported, unsupported };
}

/** @param {HtmlCheck} check */
function resultOf({ score, elements, truncated, features, clients }) {
  const names = new Map(clients.map((client) => [client.family, client['family-name']]));
  const limited = features.filter(({ score }) => score.supported < 100);
  return [
    h('section', { class: 'check-total' },
      h('p', { class: 'check-score' }, h('b', { class: grade(score.supported) }, percent(score.supported)), ' supported'),
      bar(score),
      h('p', { class: 'check-shares soft' }, share('good', score.supported, 'supported'), share('fair', score.partial, 'partially'), share('bad', score.unsupported, 'not supported'), h('span', {}, `${plural(elements, 'element')}, ${plural(features.length, 'feature')}`)),
      truncated && h('p', { class: 'check-note' }, icon('warning'), 'The message is too large: a part of it was not checked.')),
    h('section', {}, h('h2', {}, 'Features that some clients do not support'), limited.length > 0 ? featureList(limited, names) : h('p', { class: 'soft' }, 'None. These clients support the HTML of this message.')),
    clients.length > 0 && h('section', {}, h('h2', {}, 'Clients'), clientTable(clients)),
  ];
}

/**
 * @param {string} kind
 * @param {number} value
 * @param {string} words
 */
const share = (kind, value, words) => h('span', { class: `check-share ${kind}` }, `${percent(value)} ${words}`);

/**
 * @param {HtmlCheckFeature[]} features
 * @param {Map<string, string>} names The names of the client families.
 */
function featureList(features, names) {
  const wrap = (/** @type {HTMLButtonElement} */ button) => h('li', { class: 'panel-end' }, button);
  return h('ul', { class: 'check-features' }, withShowMore(features, (one) => feature(one, names), { first: FIRST_FEATURES, wrap }));
}

/**
 * @param {HtmlCheckFeature} feature
 * @param {Map<string, string>} names
 */
function feature({ title, category, url, count, lines, score, clients }, names) {
  const name = url === null ? h('span', {}, title) : h('a', { href: url, target: '_blank', rel: 'noopener noreferrer' }, title);
  const families = (/** @type {'no' | 'partial'} */ wanted) => [...new Set(clients.filter(({ support }) => support === wanted).map(({ family }) => names.get(family) ?? family))];
  const lacking = families('no');
  const partly = families('partial').filter((family) => !lacking.includes(family));
  return h('li', { class: 'check-feature' },
    h('div', { class: 'check-words' },
      h('span', { class: 'check-name' }, name, ' ', h('span', { class: 'badge' }, category)),
      h('span', { class: 'soft' }, [plural(count, 'use'), lineList(lines)].filter(Boolean).join(', ')),
      lacking.length > 0 && h('span', {}, `Not in ${lacking.join(', ')}`),
      partly.length > 0 && h('span', { class: 'soft' }, `Partly in ${partly.join(', ')}`)),
    h('div', { class: 'check-support' }, h('span', {}, percent(score.supported)), bar(score)));
}

/** @param {number[]} lines */
function lineList(lines) {
  if (lines.length === 0) return '';
  const named = lines.slice(0, MAX_LINES).join(', ');
  const more = lines.length > MAX_LINES ? ` and ${lines.length - MAX_LINES} more` : '';
  return `${lines.length === 1 ? 'line' : 'lines'} ${named}${more}`;
}

/** @param {HtmlCheck['clients']} clients */
function clientTable(clients) {
  const titles = ['Client', 'Supported', 'Partially', 'Not supported'].map((title) => h('th', { scope: 'col' }, title));
  const row = (/** @type {HtmlCheck['clients'][number]} */ client) => h('tr', {},
    h('th', { scope: 'row' }, client['family-name'], ' ', h('span', { class: 'soft' }, client['platform-name'])),
    [client.supported, client.partial, client.unsupported].map((value) => h('td', { class: 'number' }, value)));
  return h('table', { class: 'check-clients' }, h('caption', { class: 'hidden' }, 'Number of features that each client supports'),
    h('thead', {}, h('tr', {}, titles)),
    h('tbody', {}, withShowMore(clients, row, { first: FIRST_CLIENTS, wrap: tableRow(titles.length) })));
}

/**
 * A bar with the shares of a score. The numbers are next to it.
 * @param {HtmlCheckScore} score
 */
function bar({ supported, partial, unsupported }) {
  const part = (/** @type {string} */ kind, /** @type {number} */ value) => {
    const element = h('span', { class: kind });
    element.style.setProperty('flex-grow', String(value));
    return element;
  };
  return h('div', { class: 'check-bar', 'aria-hidden': 'true' }, part('good', supported), part('fair', partial), part('bad', unsupported));
}

/** @param {number} value */
const percent = (value) => `${Math.round(value * 10) / 10} %`;

/** @param {number} supported */
const grade = (supported) => (supported >= GOOD ? 'good' : supported >= FAIR ? 'fair' : 'bad');

customElements.define('message-html-check', MessageHtmlCheck);
