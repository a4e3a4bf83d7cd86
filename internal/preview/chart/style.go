package chart

// pictureStyle styles each class, in light and dark. Red means that somebody must act. Colour is not the only difference: a timeout is hatched, and
// every row says in words what happened.
const pictureStyle = `
text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;fill:#1f2933}
.title{font-size:16px;font-weight:600}
.small{font-size:11px;fill:#52606d}
.note{font-size:11px;fill:#3e4c59;paint-order:stroke;stroke:#fff;stroke-width:3px;stroke-linejoin:round}
.bad{font-size:11px;fill:#8a4b00;paint-order:stroke;stroke:#fff;stroke-width:3px;stroke-linejoin:round}
.good{font-size:11px;fill:#146c43;paint-order:stroke;stroke:#fff;stroke-width:3px;stroke-linejoin:round}
.plan{font-size:11px;fill:#1d4ed8;paint-order:stroke;stroke:#fff;stroke-width:3px;stroke-linejoin:round}
.page{fill:#fff;stroke:#cbd2d9}
.plot{fill:#f8fafc}
.grid{stroke:#e4e7eb;fill:none}
.midnight{stroke:#9aa5b1;fill:none}
.success{fill:#2da160}
.failure{fill:#d9730d}
.timeout{fill:url(#hatch);stroke:#d9730d}
.running{fill:#3b82f6}
.other{fill:#9aa5b1}
.queued{fill:#9aa5b1;fill-opacity:.45;stroke:#9aa5b1}
.deadline{fill:#7b8794;fill-opacity:.18}
.wait{stroke:#7b8794;stroke-width:1.2;fill:none}
.arrow{fill:#7b8794}
.planned{stroke:#1d4ed8;stroke-dasharray:4 3;fill:none}
.wish{fill:#d9730d;fill-opacity:.06;stroke:#d9730d;stroke-dasharray:3 2}
.final{fill:#b42318}
.stroke{stroke:#fff;stroke-width:2;fill:none}
.mark{fill:#6b4fbb}
@media (prefers-color-scheme:dark){
text{fill:#e6eaf0}
.small{fill:#aab4c2}
.note{fill:#d3dae3;stroke:#1a2029}
.bad{fill:#f2bd73;stroke:#1a2029}
.good{fill:#7fd8a4;stroke:#1a2029}
.plan{fill:#86bdf8;stroke:#1a2029}
.page{fill:#1a2029;stroke:#35404e}
.plot{fill:#12161c}
.grid{stroke:#35404e}
.midnight{stroke:#5b6877}
.planned{stroke:#6ea3f5}
.mark{fill:#a58cf0}
}
`

const hatch = `<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">` +
	`<rect width="6" height="6" fill="#fde3c3"/><rect width="3" height="6" fill="#e8862a"/></pattern></defs>`
