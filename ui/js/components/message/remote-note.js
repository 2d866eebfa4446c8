// The note about remote content of the HTML of a message: what is not loaded, and buttons to load it once or always.

import { h, set } from '../../lib/dom.js';
import { count } from '../../lib/format.js';
import { icon } from '../../lib/icons.js';
import { visible } from '../../lib/visible.js';
import * as settings from '../../lib/settings.js';

const FIRST_HOSTS = 3;

/**
 * Returns the note, or null if the message has no remote content. `load` is called when the user wants it to be loaded or not.
 * @param {string[]} hosts
 * @param {(isLoaded: boolean) => void} load
 */
export function remoteNote(hosts, load) {
  if (hosts.length === 0) return null;
  let isLoaded = isAlwaysLoaded();
  const text = h('span', { class: 'remote-text truncate', role: 'status', title: hosts.map(visible).join('\n') });
  const once = h('button', { class: 'button plain small', type: 'button', onclick: () => show(true) }, 'Load once');
  const always = h('button', { class: 'button plain small', title: 'Always load remote content', type: 'button', onclick: () => {
    settings.set('remoteContent', isAlwaysLoaded() ? 'ask' : 'always');
    show(isAlwaysLoaded());
  } });
  const draw = () => {
    const first = hosts.slice(0, FIRST_HOSTS).map(visible).join(', ');
    const named = hosts.length > FIRST_HOSTS ? `${first} and ${count(hosts.length - FIRST_HOSTS)} more` : first;
    const state = !isLoaded ? 'blocked' : isAlwaysLoaded() ? 'always loaded' : 'loaded once';
    text.textContent = `Remote content ${state}: ${named}`;
    // Not `disabled`, because the button has the focus.
    set(once, { 'aria-disabled': isLoaded && 'true' });
    once.hidden = isAlwaysLoaded();
    always.textContent = isAlwaysLoaded() ? 'Ask again' : 'Always';
  };
  const show = (/** @type {boolean} */ wanted) => {
    const isChanged = wanted !== isLoaded;
    isLoaded = wanted;
    if (isChanged) load(isLoaded);
    draw();
  };
  draw();
  return h('div', { class: 'message-helper remote-note' }, icon('shield'), text, once, always);
}

/** Returns whether remote content is always loaded. */
export const isAlwaysLoaded = () => settings.get('remoteContent') === 'always';
