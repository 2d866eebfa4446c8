// The field in the bar that searches: in the mailbox that is shown, and elsewhere in all mail. What is found is shown on a
// page of its own, which has a larger field.

/** @import { Route } from '../types.js' */

import * as keys from './keys.js';
import * as paths from './paths.js';
import { fill, find } from './dom.js';
import { icon } from './icons.js';
import { go } from './router.js';
import { visible } from './visible.js';

/**
 * Makes the field work. Returns what is to be called with each page that is shown.
 * @returns {(route: Route) => void}
 */
export function seeker() {
  const form = find(document, '.seek', HTMLFormElement);
  const input = find(form, 'input', HTMLInputElement);
  const link = find(document, '.seek-link', HTMLAnchorElement);
  /** @type {string | null} */
  let mailbox = null;
  form.prepend(icon('search'));
  fill(link, icon('search'));
  input.addEventListener('keydown', ({ key, isComposing }) => key === 'Escape' && !isComposing && input.value === '' && input.blur());
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const query = input.value.trim();
    input.value = '';
    input.blur();
    go(paths.search({ query, mailbox }));
  });
  // Where there is no room for the field, there is a way to the page.
  const focus = () => (input.checkVisibility({ visibilityProperty: true }) ? input.focus() : link.click());
  keys.add([{ keys: ['s', '/'], group: 'Everywhere', label: 'Search mail', run: focus }]);
  return (route) => {
    mailbox = route.page === 'mailbox' ? route.mailbox : null;
    const words = mailbox === null ? 'Search all mail' : `Search in ${visible(mailbox)}`;
    input.placeholder = `${words}…`;
    input.ariaLabel = words;
    link.href = paths.search({ mailbox });
  };
}
