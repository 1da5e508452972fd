"use strict";
const items = [...document.querySelectorAll(".item")];
const search = document.getElementById("search");
const boxes = [...document.querySelectorAll("input[data-filter]")];
const found = document.getElementById("found");
const texts = new Map(items.map((item) => [item, item.querySelector(".head").textContent.toLowerCase()]));

function filter() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const kinds = new Set(boxes.filter((box) => box.checked).map((box) => box.dataset.filter));
  let count = 0;
  for (const item of items) {
    const text = texts.get(item);
    const shown = kinds.has(item.dataset.kind) && words.every((word) => text.includes(word));
    item.hidden = !shown;
    count += shown;
  }
  for (const section of document.querySelectorAll("section")) {
    section.hidden = !section.querySelector(".item:not([hidden])");
  }
  found.textContent = `${count} of ${items.length}`;
}

search.addEventListener("input", filter);
boxes.forEach((box) => box.addEventListener("change", filter));
filter();
