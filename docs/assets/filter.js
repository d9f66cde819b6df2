// A box above each long table that shows only the rows with the words that are typed.
document$.subscribe(() => {
  for (const table of document.querySelectorAll("article table")) {
    const rows = [...table.querySelectorAll("tbody tr")];
    if (rows.length < 30) continue;
    const box = document.createElement("input");
    box.type = "search";
    box.className = "md-input md-input--stretch";
    box.placeholder = `Filter ${rows.length} rows by words`;
    box.setAttribute("aria-label", box.placeholder);
    const texts = rows.map((row) => row.textContent.toLowerCase());
    box.addEventListener("input", () => {
      const words = box.value.toLowerCase().split(/\s+/);
      rows.forEach((row, index) => (row.hidden = !words.every((word) => texts[index].includes(word))));
    });
    (table.closest(".md-typeset__scrollwrap") || table).before(box);
  }
});
