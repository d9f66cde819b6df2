"use strict";
for (const picture of document.querySelectorAll("svg[data-zoom]")) {
  const [, , width, height] = picture.getAttribute("viewBox").split(" ").map(Number);
  const label = Number(picture.dataset.zoom);
  const lanes = picture.querySelector("g.lanes");
  let scale = 1, shift = 0;
  const show = () => {
    scale = Math.min(Math.max(scale, 1), 4096);
    shift = Math.min(Math.max(shift, 0), (width - label) * (1 - 1 / scale));
    lanes.setAttribute("transform", `translate(${label - (label + shift) * scale} 0) scale(${scale} 1)`);
    picture.dataset.scale = scale;
  };
  const zoom = (factor, at) => {
    const before = shift + at / scale;
    scale = Math.min(Math.max(scale * factor, 1), 4096);
    shift = before - at / scale;
    show();
  };
  const spots = [...lanes.querySelectorAll(".healed, .lasting, .parted")].map((r) => Number(r.getAttribute("x")) - label)
    .sort((a, b) => a - b);
  const middle = (width - label) / 2;
  picture.addEventListener("wheel", (event) => {
    const box = picture.getBoundingClientRect();
    event.preventDefault();
    zoom(event.deltaY < 0 ? 1.25 : 0.8, Math.max(0, ((event.clientX - box.left) / box.width) * width - label));
  }, { passive: false });
  picture.addEventListener("keydown", (event) => {
    const step = (width - label) / scale / 8;
    const next = () => spots.find((spot) => spot > shift + 0.5 / scale) ?? shift;
    const actions = { "+": () => zoom(1.5, middle), "=": () => zoom(1.5, middle), "-": () => zoom(1 / 1.5, middle),
      ArrowLeft: () => { shift -= step; show(); }, ArrowRight: () => { shift += step; show(); },
      "0": () => { scale = 1; show(); }, n: () => { shift = next(); show(); } };
    if (event.key in actions) { event.preventDefault(); actions[event.key](); }
  });
}
addEventListener("beforeprint", () => { for (const one of document.querySelectorAll("details")) one.open = true; });
