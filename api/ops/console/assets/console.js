// The console in a browser: pages refresh themselves, forms answer in their place, plots are drawn. Without it all works too.
import { takeForms } from './forms.js';
import { startListening } from './live.js';
import { startPlots } from './plots.js';

/** Tables that are wider than the screen can be moved with the keys; the others are no stop on the way. */
const markScrollers = () => {
  for (const box of document.querySelectorAll('.scroll')) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute('tabindex');
  }
};

takeForms();
startListening();
startPlots();
markScrollers();
addEventListener('resize', markScrollers);
document.addEventListener('laid', markScrollers);
document.getElementById('said')?.focus();
