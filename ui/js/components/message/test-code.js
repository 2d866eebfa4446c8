// Code of a test that waits for a message like the one that is shown.

/** @import { ShownMessage } from '../../types.js' */
/** @import { MenuItem } from '../menu-button.js' */

import * as paths from '../../lib/paths.js';
import { copy } from '../../lib/clipboard.js';
import { copies } from './envelope.js';
import { isLink } from './linkify.js';

/** Of longer subjects, and of longer words of a link, only the start is expected, in characters. */
const MAX_LENGTH = 80;

/**
 * What a test waits for.
 * @typedef {object} Expected
 * @property {string} server The URL of the server.
 * @property {string} mailbox
 * @property {string} recipient
 * @property {string} title The words of the subject.
 * @property {string} subject The subject, or its start.
 * @property {boolean} isWhole Whether that is the whole subject.
 * @property {string} match A search query; empty if the subject has no words.
 * @property {boolean} hasCode
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
  const { mailbox, subject, code, mainLink } = message;
  const words = oneLine(subject);
  // A search finds whole words only.
  const phrase = (words.length > MAX_LENGTH ? start(words).replace(/\S*$/u, '') : words).replaceAll(/["\\]/gu, ' ').trim();
  return {
    server: new URL(paths.inbox(), location.href).href.replace(/\/$/u, ''),
    mailbox,
    recipient: oneLine(copies(message).own?.recipients?.at(0) ?? mailbox),
    title: start(words),
    subject: start(subject),
    isWhole: subject.length <= MAX_LENGTH,
    match: /[\p{L}\p{N}]/u.test(phrase) ? `subject:"${phrase}"` : '',
    hasCode: code !== null,
    link: mainLink && linkWords(mainLink.text, mainLink.href),
  };
}

/**
 * Returns a text that the link has in other messages too: its words, or the path of its URL.
 * @param {string} text
 * @param {string} href
 */
function linkWords(text, href) {
  const words = oneLine(text);
  if (words && !isLink(words)) return start(words);
  const { host, pathname } = new URL(href);
  return `${host}${pathname === '/' ? '' : pathname}`;
}

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
function pytest({ server, mailbox, recipient, title, subject, isWhole, match, hasCode, link }) {
  return lines([
    'from restante import Restante',
    '',
    '',
    `def test_${identifier(title)}():`,
    `    box = Restante(${quoted(server)}).mailbox(${quoted(mailbox)})`,
    '    before = box.last()',
    `    # Let your application send the message to ${recipient} here.`,
    `    mail = box.wait(${match && `match=${quoted(match)}, `}after=before)`,
    isWhole ? `    assert mail.subject == ${quoted(subject)}` : `    assert mail.subject.startswith(${quoted(subject)})`,
    hasCode && '    code = mail.code()',
    hasCode && '    assert code',
    link !== null && `    link = mail.link(${quoted(link)})`,
    link !== null && '    assert link.startswith("http")',
  ]);
}

/** @param {Expected} test */
function playwright({ server, mailbox, recipient, title, subject, isWhole, match, hasCode, link }) {
  return lines([
    'import { expect, test } from "@playwright/test";',
    'import { Restante } from "restante";',
    '',
    `test(${quoted(title || 'message')}, async ({ page }) => {`,
    `  const box = new Restante({ url: ${quoted(server)} }).mailbox(${quoted(mailbox)});`,
    '  const before = await box.last();',
    `  // Let your application send the message to ${recipient} here.`,
    `  const mail = await box.waitForMessage({ ${match && `match: ${quoted(match)}, `}after: before });`,
    isWhole ? `  expect(mail.subject).toBe(${quoted(subject)});` : `  expect(mail.subject.startsWith(${quoted(subject)})).toBe(true);`,
    hasCode && '  const code = await mail.code();',
    hasCode && '  expect(code).not.toBe("");',
    link !== null && `  await page.goto(await mail.link(${quoted(link)}));`,
    '});',
  ]);
}

/** @param {Expected} test */
function curl({ server, mailbox, recipient, subject, isWhole, match, hasCode, link }) {
  const box = `"$server/api/v2/mailbox/${encodeURIComponent(mailbox)}/wait"`;
  return lines([
    `server=${shell(server)}`,
    `before=$(curl -s "$server/api/v1/mailbox/${encodeURIComponent(mailbox)}/latest" | jq -r '.id // "0"')`,
    `# Let your application send the message to ${recipient} here.`,
    `id=$(curl -sfG ${box} -d timeout=30s -d after="$before"${match && ` --data-urlencode ${shell(`match=${match}`)}`} | jq -r '.messages[0].id')`,
    // Control characters are not safe in a terminal.
    !/\p{C}/u.test(subject)
      ? `curl -sf "$server/api/v2/messages/$id" | jq -e --arg subject ${shell(subject)} '.subject | ${isWhole ? '. == $subject' : 'startswith($subject)'}'`
      : `curl -sf "$server/api/v2/messages/$id" | jq -r .subject`,
    hasCode && `curl -sf "$server/api/v2/messages/$id/codes" | jq -r '.codes[0] | select(.score >= 0.5) | .code'`,
    link !== null && `curl -sf "$server/api/v2/messages/$id/links" | jq -r --arg text ${shell(link)} 'first(.links[] | select((.text + " " + .href) | contains($text))) | .href'`,
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
