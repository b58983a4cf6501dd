// Sets the colours a reader chose, before anything is painted.
try {
  const kept = localStorage.getItem('tessera-theme');
  if (kept) document.documentElement.dataset.theme = kept;
} catch {
  // Without storage the colours are those of the system.
}
