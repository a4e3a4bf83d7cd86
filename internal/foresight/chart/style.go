package chart

// pictureStyle gives each class its look. The colours keep their difference for people who do not tell red from green: a
// timeout is hatched, and every row says in words what happened.
const pictureStyle = `
text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;fill:#1f2933}
.title{font-size:16px;font-weight:600}
.small{font-size:11px;fill:#52606d}
.note{font-size:11px;fill:#3e4c59;paint-order:stroke;stroke:#fff;stroke-width:3px;stroke-linejoin:round}
.bad{font-size:11px;fill:#b42318;paint-order:stroke;stroke:#fff;stroke-width:3px;stroke-linejoin:round}
.good{font-size:11px;fill:#146c43;paint-order:stroke;stroke:#fff;stroke-width:3px;stroke-linejoin:round}
.plan{font-size:11px;fill:#1d4ed8;paint-order:stroke;stroke:#fff;stroke-width:3px;stroke-linejoin:round}
.page{fill:#fff;stroke:#cbd2d9}
.plot{fill:#f8fafc}
.grid{stroke:#e4e7eb;fill:none}
.midnight{stroke:#9aa5b1;fill:none}
.success{fill:#2da160}
.failure{fill:#dc3b2f}
.timeout{fill:url(#hatch);stroke:#d9730d}
.running{fill:#3b82f6}
.other{fill:#9aa5b1}
.deadline{fill:#7b8794;fill-opacity:.18}
.wait{stroke:#7b8794;stroke-width:1.2;fill:none}
.arrow{fill:#7b8794}
.planned{stroke:#1d4ed8;stroke-dasharray:4 3;fill:none}
.wish{fill:#dc3b2f;fill-opacity:.06;stroke:#dc3b2f;stroke-dasharray:3 2}
.final{fill:#7f1d1d}
.stroke{stroke:#fff;stroke-width:2;fill:none}
.mark{fill:#6b4fbb}
`

const hatch = `<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">` +
	`<rect width="6" height="6" fill="#fde3c3"/><rect width="3" height="6" fill="#e8862a"/></pattern></defs>`
