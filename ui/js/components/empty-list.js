// <empty-list>: the content in place of an empty list: how to send a message, that nothing was found, or why the list cannot be
// loaded. The event `retry` requests another attempt.

/** @import { Messages } from '../lib/messages.js' */
/** @import { Scope } from '../lib/scope.js' */
/** @import { Server } from '../types.js' */

import * as api from '../lib/api.js';
import { copy } from '../lib/clipboard.js';
import { fill, h } from '../lib/dom.js';
import { folderOf, ownerOf } from '../lib/folders.js';
import { icon } from '../lib/icons.js';
import * as paths from '../lib/paths.js';
import { scopeKey } from '../lib/scope.js';
import { SNIPPETS, serverPlace, target } from '../lib/snippets.js';
import { visible } from '../lib/visible.js';
import { searchHelp } from './search-help.js';
import { composeButton } from './compose-dialog.js';
import './get-started.js';

/** The snippets that are shown. */
const SHOWN = ['swaks', 'curl'];
/** Addresses that need no quoting in a shell. For others no command is shown, because it would be unsafe to paste. */
const PLAIN = /^\w[\w.+-]*@\w[\w.-]*$/u;

/** The valid mailbox names. @type {Record<Server['mailbox-naming'], [string, string, string]>} */
const NAMES = {
  local: ['A mailbox name is the part before the @ of an address, such as ', 'james', '. A whole address works too.'],
  full: ['A mailbox name is a whole address on this server, such as ', 'james@example.org', '.'],
  domain: ['A mailbox name is the part after the @ of an address on this server, such as ', 'example.org', '. A whole address works too.'],
};

export class EmptyList extends HTMLElement {
  #shownKey = '';

  /**
   * Shows why there is no list, or hides itself. Returns whether it is shown.
   * @param {Messages} messages
   */
  show({ state, error, entries, scope, isComplete }) {
    const isNeeded = entries.length === 0 && (isComplete || state === 'refused' || error !== null);
    this.hidden = !isNeeded;
    if (!isNeeded) return false;
    if (state === 'refused') this.#showRefused(error, scope);
    else if (error !== null) this.#showError(api.sentence(error));
    else if (scope.query !== '') this.#showOnce(scopeKey(scope), () => [nothingFound(scope)]);
    else if (scope.mailbox !== null && folderOf(scope.mailbox) !== null) this.#showEmptyFolder(ownerOf(scope.mailbox));
    else if (scope.mailbox !== null) this.#showEmpty(scope.mailbox);
    else this.#showOnce('inbox', () => [document.createElement('get-started')]);
    return true;
  }

  /**
   * @param {string} key
   * @param {() => Element[]} content
   */
  #showOnce(key, content) {
    if (this.#shownKey === key) return;
    this.#shownKey = key;
    fill(this, ...content());
  }

  /**
   * Shows that the mailbox is empty, and how to send a message to it.
   * @param {string} mailbox
   */
  #showEmpty(mailbox) {
    return this.#showWithServer(`empty ${mailbox}`, (server) => {
      const naming = server?.['mailbox-naming'];
      if (naming === 'full' && !mailbox.includes('@')) return [icon('envelope'), h('h2', {}, 'This mailbox is empty'), h('p', {}, 'No messages can arrive under this name. ', ...hint(naming))];
      const recipient = mailbox.includes('@') ? mailbox : naming === 'domain' ? `anyone@${mailbox}` : `${mailbox}@example.org`;
      const to = target(serverPlace(), server, recipient);
      const snippets = PLAIN.test(recipient) ? SNIPPETS.filter(({ id }) => SHOWN.includes(id)) : [];
      return [
        icon('envelope'),
        h('h2', {}, 'This mailbox is empty'),
        h('p', {}, 'Send a message to ', h('code', {}, visible(recipient)), ' by SMTP to ', h('code', { class: 'nowrap' }, `${to.host.includes(':') ? `[${to.host}]` : to.host}:${to.port}`), '. It appears here automatically.'),
        ...snippets.map(({ name, code }) => command(name, code(to))),
        composeButton(recipient),
      ];
    });
  }

  /**
   * Shows that the folder is empty, and where messages arrive.
   * @param {string} owner
   */
  #showEmptyFolder(owner) {
    this.#showOnce(`folder ${owner}`, () => [h('div', { class: 'empty' }, icon('envelope'), h('h2', {}, 'This folder is empty'),
      h('p', {}, 'Messages arrive in ', h('a', { href: paths.mailbox(owner) }, h('bdi', {}, visible(owner))), '. A mail program moves them to folders by IMAP.'))]);
  }

  /**
   * Shows why the server refuses the query or the name of the mailbox.
   * @param {unknown} error
   * @param {Scope} scope
   */
  #showRefused(error, { query }) {
    const sentence = api.sentence(error);
    const position = error instanceof api.ApiError ? error.position : null;
    if (position !== null) return this.#showOnce(`query ${query} ${sentence}`, () => [queryError(query, sentence, position)]);
    return this.#showWithServer(`refuse ${sentence}`, (server) => [
      icon('warning'),
      h('h2', {}, 'This mailbox name is not valid'),
      h('p', { role: 'alert' }, sentence),
      h('p', {}, ...hint(server?.['mailbox-naming'] ?? 'local')),
    ]);
  }

  /**
   * Shows a text that depends on the server, once.
   * @param {string} key
   * @param {(server: Server | null) => Element[]} content
   */
  async #showWithServer(key, content) {
    if (this.#shownKey === key) return;
    this.#shownKey = key;
    const server = await api.about().catch(() => null);
    if (this.#shownKey === key) fill(this, h('div', { class: 'empty' }, content(server)));
  }

  /**
   * Shows that the list could not be loaded.
   * @param {string} sentence
   */
  #showError(sentence) {
    if (this.#shownKey === sentence) return;
    this.#shownKey = sentence;
    fill(
      this,
      h('div', { class: 'empty' },
        icon('warning'),
        h('h2', {}, 'The list could not be loaded'),
        h('p', { role: 'alert' }, sentence),
        h('p', {}, 'The page tries again every few seconds.'),
        h('button', { class: 'button', type: 'button', onclick: () => this.dispatchEvent(new Event('retry', { bubbles: true })) }, 'Try again now'),
      ),
    );
  }
}

/** @param {Scope} scope */
function nothingFound({ mailbox, query }) {
  return h('div', { class: 'empty' }, icon('search'), h('h2', {}, 'No messages found'),
    h('p', {}, mailbox === null ? 'No message matches all terms. Use fewer words, or only the start of a word, such as log.' : 'No message in this mailbox matches all terms.'),
    mailbox !== null && h('a', { href: paths.search({ query }) }, 'Search all mailboxes'),
    searchHelp(true));
}

/**
 * @param {string} query
 * @param {string} sentence
 * @param {number} position The number of characters before the error.
 */
function queryError(query, sentence, position) {
  const characters = [...query];
  const text = (/** @type {number} */ from, /** @type {number | undefined} */ to = undefined) => visible(characters.slice(from, to).join(''));
  return h('div', { class: 'empty' }, icon('warning'), h('h2', {}, 'This query is not valid'), h('p', { role: 'alert' }, sentence),
    h('p', { class: 'search-error-position mono' }, text(0, position), h('mark', {}, text(position, position + 1) || '\u00a0'), text(position + 1)), searchHelp(true));
}

/** @param {Server['mailbox-naming']} naming */
function hint(naming) {
  const [before, example, after] = NAMES[naming];
  return [before, h('code', {}, example), `${after} Press `, h('kbd', {}, 'o'), ' to open another mailbox.'];
}

/**
 * @param {string} name
 * @param {string} line
 */
function command(name, line) {
  return h('div', { class: 'command' },
    h('pre', { tabindex: 0, 'aria-label': `Command for ${name}` }, line),
    h('button', { class: 'button plain small', type: 'button', 'aria-label': `Copy the command for ${name}`, title: 'Copy', onclick: () => copy(line) }, icon('copy')));
}

customElements.define('empty-list', EmptyList);
