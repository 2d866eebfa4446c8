// Code of a test that waits for a message like the one that is shown.

/** @import { ShownMessage } from '../../types.js' */
/** @import { MenuItem } from '../menu-button.js' */

import * as paths from '../../lib/paths.js';
import { copy } from '../../lib/clipboard.js';
import { copies } from './envelope.js';
import { isLink } from './linkify.js';

/** Of longer subjects, and of longer words of a link, only the start is expected, in characters. */
const MAX_LENGTH = 80;

/** Words with a digit differ in the next message: codes, order numbers, dates. */
const VARIABLE = /\S*\p{N}\S*/gu;

/**
 * What a test waits for. It contains nothing that differs in the next message of the same kind.
 * @typedef {object} Expected
 * @property {string} server The URL of the server.
 * @property {string} mailbox
 * @property {string} recipient
 * @property {string} title The words of the subject.
 * @property {string} match A search query; empty if the subject has no words.
 * @property {string} subject The subject, or the regular expression that it matches.
 * @property {boolean} isPattern Whether `subject` is a regular expression.
 * @property {string | null} code A regular expression for the code; null if the message has none.
 * @property {string | null} link A text that identifies the link; null if the message has none.
 */

/**
 * Returns the entries of the menu.
 * @param {ShownMessage} message
 * @returns {MenuItem[]}
 */
export function testMenu(message) {
  const test = expected(message);
  return [
    { label: 'pytest', detail: 'clients/python', run: () => copy(pytest(test), 'Test for pytest copied') },
    { label: 'Playwright', detail: 'clients/typescript', run: () => copy(playwright(test), 'Test for Playwright copied') },
    { label: 'curl', detail: 'with jq', run: () => copy(curl(test), 'Commands for curl copied') },
  ];
}

/**
 * @param {ShownMessage} message
 * @returns {Expected}
 */
function expected(message) {
  const { mailbox, subject, code, 'main-link': link } = message;
  const words = withoutCode(oneLine(subject), code?.code ?? '');
  const isLong = words.length > MAX_LENGTH;
  // A search finds whole words only.
  const known = isLong ? start(words).replace(/\S*$/u, '') : words;
  const phrases = known.split(VARIABLE).map((phrase) => phrase.replaceAll(/["\\]/gu, ' ').trim()).filter((phrase) => /\p{L}/u.test(phrase));
  const isPattern = isLong || known.match(VARIABLE) !== null || known !== subject;
  return {
    server: new URL(paths.inbox(), location.href).href.replace(/\/$/u, ''),
    mailbox,
    recipient: oneLine(copies(message).own?.recipients?.at(0) ?? mailbox),
    title: phrases.join(' '),
    match: phrases.map((phrase) => `subject:"${phrase}"`).join(' '),
    subject: isPattern ? pattern(known, oneLine(subject) === subject ? ' ' : '.+') + (isLong ? '' : '$') : subject,
    isPattern,
    code: code && codePattern(code.code),
    link: link && linkWords(link.text, link.href),
  };
}

/**
 * Returns a subject in which the code is one word. It can be written with spaces: “482 913”.
 * @param {string} subject
 * @param {string} code
 */
function withoutCode(subject, code) {
  const parts = [...code].filter((char) => /[\p{L}\p{N}]/u.test(char)).map(escaped);
  return parts.length === 0 ? subject : subject.replace(new RegExp(parts.join('[\\s-]?'), 'giu'), '0');
}

/**
 * Returns a regular expression for a subject in which other numbers are possible.
 * @param {string} words
 * @param {string} space The expression for the spaces between words.
 */
function pattern(words, space) {
  const parts = words.trim().split(' ').map((word) => (/\p{N}/u.test(word) ? '.+' : escaped(word)));
  return `^${parts.filter((part, at) => part !== '.+' || parts[at - 1] !== '.+').join(space)}`;
}

/**
 * Returns a regular expression for codes of the same shape.
 * @param {string} code
 */
const codePattern = (code) => `^${code.replaceAll(/[A-Za-z0-9]+|[^A-Za-z0-9]+/gu, (run) => (/^[0-9]+$/u.test(run) ? `[0-9]{${run.length}}` : /^[A-Za-z0-9]+$/u.test(run) ? `[A-Za-z0-9]{${run.length}}` : escaped(run)))}$`;

/**
 * Returns a text that the link has in other messages too: its words, or the start of its URL.
 * @param {string} text
 * @param {string} href
 */
function linkWords(text, href) {
  const words = oneLine(text);
  const longest = words.split(VARIABLE).map((run) => run.trim()).sort((a, b) => b.length - a.length)[0];
  if (longest && !isLink(words)) return start(longest);
  const { host, pathname } = new URL(href);
  const segments = pathname.split('/');
  const end = segments.findIndex((segment) => /[0-9]/u.test(segment));
  return `${host}${(end < 0 ? segments : [...segments.slice(0, end), '']).join('/').replace(/^\/$/u, '')}`;
}

/**
 * Escapes the characters that are special in regular expressions.
 * @param {string} text
 */
const escaped = (text) => text.replaceAll(/[\\^$.*+?()[\]{}|/]/gu, '\\$&');

/**
 * Replaces line ends, other spaces and control characters by single spaces.
 * @param {string} text
 */
const oneLine = (text) => text.replace(/[\p{C}\s]+/gu, ' ').trim();

/**
 * Returns the first characters, without half of a character at the end.
 * @param {string} text
 */
const start = (text) => text.slice(0, MAX_LENGTH).replace(/[\uD800-\uDBFF]$/u, '');

/** @param {Expected} test */
function pytest({ server, mailbox, recipient, title, subject, isPattern, match, code, link }) {
  return lines([
    (isPattern || code !== null) && 'import re',
    (isPattern || code !== null) && '',
    'from restante import Restante',
    '',
    '',
    `def test_${identifier(title)}():`,
    `    box = Restante(${quoted(server)}).mailbox(${quoted(mailbox)})`,
    '    before = box.last()',
    `    # Let your application send the message to ${recipient} here.`,
    `    mail = box.wait(${match && `match=${quoted(match)}, `}after=before)`,
    isPattern ? `    assert re.search(${quoted(subject)}, mail.subject)` : `    assert mail.subject == ${quoted(subject)}`,
    code !== null && '    code = mail.code()',
    code !== null && `    assert re.search(${quoted(code)}, code)`,
    link !== null && `    link = mail.link(${quoted(link)})`,
    link !== null && '    assert link.startswith("http")',
  ]);
}

/** @param {Expected} test */
function playwright({ server, mailbox, recipient, title, subject, isPattern, match, code, link }) {
  return lines([
    'import { expect, test } from "@playwright/test";',
    'import { Restante } from "restante";',
    '',
    `test(${quoted(title || 'message')}, async ({ page }) => {`,
    `  const box = new Restante({ url: ${quoted(server)} }).mailbox(${quoted(mailbox)});`,
    '  const before = await box.last();',
    `  // Let your application send the message to ${recipient} here.`,
    `  const mail = await box.waitForMessage({ ${match && `match: ${quoted(match)}, `}after: before });`,
    isPattern ? `  expect(mail.subject).toMatch(/${subject}/u);` : `  expect(mail.subject).toBe(${quoted(subject)});`,
    code !== null && '  const code = await mail.code();',
    code !== null && `  expect(code).toMatch(/${code}/u);`,
    link !== null && `  await page.goto(await mail.link(${quoted(link)}));`,
    '});',
  ]);
}

/** @param {Expected} test */
function curl({ server, mailbox, recipient, subject, isPattern, match, code, link }) {
  const box = `"$server/api/v2/mailbox/${encodeURIComponent(mailbox)}/wait"`;
  return lines([
    `server=${shell(server)}`,
    `before=$(curl -s "$server/api/v1/mailbox/${encodeURIComponent(mailbox)}/latest" | jq -r '.id // "0"')`,
    `# Let your application send the message to ${recipient} here.`,
    `id=$(curl -sfG ${box} -d timeout=30s -d after="$before"${match && ` --data-urlencode ${shell(`match=${match}`)}`} | jq -r '.messages[0].id')`,
    `curl -sf "$server/api/v2/messages/$id" | jq -e --arg subject ${shell(subject)} '.subject | ${isPattern ? 'test($subject)' : '. == $subject'}'`,
    code !== null && `curl -sf "$server/api/v2/messages/$id/codes" | jq -er --arg code ${shell(code)} '.codes[0].code | select(test($code))'`,
    link !== null && `curl -sf "$server/api/v2/messages/$id/links" | jq -er --arg text ${shell(link)} 'first(.links[] | select((.text + " " + .href) | contains($text))) | .href'`,
  ]);
}

/** @param {(string | false)[]} all */
const lines = (all) => all.filter((line) => line !== false).join('\n') + '\n';

/**
 * A string literal of Python and of TypeScript.
 * @param {string} text
 */
function quoted(text) {
  const literal = JSON.stringify(text).replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029');
  const inside = literal.slice(1, -1).replaceAll('\\"', '"');
  // Single quotes are easier to read around double ones.
  return text.includes('"') && !inside.includes("'") && !inside.includes('\\') ? `'${inside}'` : literal;
}

/**
 * A word of a POSIX shell.
 * @param {string} text
 */
const shell = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/**
 * A part of a name in Python.
 * @param {string} text
 */
const identifier = (text) => text.normalize('NFKD').toLowerCase().replace(/[^a-z0-9]+/gu, '_').replace(/^_+|_+$/gu, '').slice(0, 50) || 'message';
