// The content in place of the inbox if the server does not show the messages of all mailboxes.

/** @import { Scope } from '../lib/scope.js' */

import { h } from '../lib/dom.js';
import { icon } from '../lib/icons.js';
import './get-started.js';
import './open-mailbox.js';

/** @param {Scope} scope */
export function allMailHidden({ query }) {
  if (query === '') return h('div', { class: 'all-mail-hidden page' }, document.createElement('open-mailbox'), document.createElement('get-started'));
  return h('div', { class: 'all-mail-hidden empty' }, icon('shield'), h('h1', {}, 'Searching all mailboxes is disabled'),
    h('p', {}, 'This server does not show the messages of all mailboxes. Open a mailbox and search there.'),
    document.createElement('open-mailbox'));
}
