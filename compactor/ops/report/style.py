"""How the page looks: two palettes, one style sheet. Nothing is fetched from anywhere."""

LIGHT = {
    "page": "#f4f5f7",
    "card": "#ffffff",
    "text": "#1b2027",
    "muted": "#56606d",
    "rule": "#d8dce2",
    "grid": "#e6e9ed",
    "accent": "#2563a8",
    "bar": "#5c91cc",
    "second": "#a34a06",
    "limit": "#b3261e",
    "good": "#1c7046",
    "band": "#e3f0e8",
    "track": "#eceff3",
}
DARK = {
    "page": "#111418",
    "card": "#1a1f26",
    "text": "#e6e9ee",
    "muted": "#a4adb9",
    "rule": "#363e49",
    "grid": "#2a313a",
    "accent": "#78b0ee",
    "bar": "#4a80bc",
    "second": "#f0a561",
    "limit": "#ff9286",
    "good": "#66cc96",
    "band": "#1d3529",
    "track": "#262c35",
}
"""Colours by what they are for; `test_report_page` requires a contrast of 4.5 of all text."""


def _variables(palette: dict[str, str]) -> str:
    return "".join(f"--{name}:{colour};" for name, colour in palette.items())


_RULES = """
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--page);color:var(--text);
 font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,"DejaVu Sans",sans-serif}
.skip{position:absolute;left:-999px}
.skip:focus{left:16px;top:12px;z-index:1;background:var(--card);padding:6px 12px}
a{color:var(--accent)}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
header,main,footer{max-width:1136px;margin:0 auto;padding:0 24px}
header{padding-top:32px}
h1{font-size:26px;line-height:1.25;margin:0 0 4px}
h2{font-size:18px;line-height:1.3;margin:0 0 8px}
h3{font-size:15px;margin:20px 0 6px}
p{margin:0 0 10px}
.muted,.place{color:var(--muted)}
.place,code,li,dd{overflow-wrap:anywhere}
code{font:13px/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:4px 18px;margin:16px 0 0;padding:0;font-size:14px}
section{background:var(--card);border:1px solid var(--rule);border-radius:8px;padding:20px 24px;margin:16px 0}
.verdict{border-left:6px solid var(--muted)}
.verdict h2{font-size:20px;margin:0}
.verdict p{margin:4px 0 0}
.verdict ul{margin:10px 0 0;padding-left:20px}
.verdict.in_order{border-left-color:var(--good)}
.verdict.look{border-left-color:var(--second)}
.verdict.act{border-left-color:var(--limit)}
.tiles{display:grid;grid-template-columns:repeat(4,minmax(0,1fr));gap:18px 24px;margin:0 0 20px}
.tiles dt{font-size:13px;color:var(--muted)}
.tiles dd{margin:0;font-size:22px;line-height:1.3;font-variant-numeric:tabular-nums}
.tiles dd span{display:block;font-size:13px;line-height:1.4;color:var(--muted)}
.beside{display:grid;grid-template-columns:minmax(0,1fr) 720px;gap:8px 32px;align-items:start}
.beside>*{min-width:0}
.chart{display:block;max-width:100%;height:auto;font-size:12px}
.chart text{fill:var(--muted);font-variant-numeric:tabular-nums}
.chart .bar-name,.chart .bar-amount{fill:var(--text);font-size:13px}
.chart .limit-label{fill:var(--limit);paint-order:stroke;stroke:var(--card);stroke-width:4px}
.chart .band-label{fill:var(--good)}
.grid{stroke:var(--grid)}
.base{stroke:var(--muted)}
.in{fill:var(--bar)}
.out,.halo{fill:none;stroke:var(--second);stroke-width:2}
.halo{stroke:var(--card);stroke-width:5}
.p50,.p99{fill:none;stroke-width:1.75}
.p50{stroke:var(--accent)}
.p99{stroke:var(--second);stroke-dasharray:5 3}
.dot{fill:var(--accent)}
.diamond{fill:var(--second)}
.limit{stroke:var(--limit);stroke-width:1.5;stroke-dasharray:2 3}
.band{fill:var(--band)}
.band-edge{stroke:var(--good);stroke-dasharray:3 3}
.small{stroke:var(--muted)}
.hatch-line{stroke:var(--muted)}
.track{fill:var(--track)}
.narrow{display:none}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:2px 18px;margin:0 0 6px;padding:0;font-size:13px}
.legend li{display:flex;align-items:center;gap:6px}
details{margin-top:12px}
.beside .data{grid-column:1/-1}
summary{cursor:pointer;color:var(--accent);width:fit-content;font-size:14px;padding:2px 0}
.scroll{overflow-x:auto;margin-top:8px}
table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums}
caption{text-align:left;color:var(--muted);padding-bottom:4px}
th,td{padding:3px 14px 3px 0;text-align:left;white-space:nowrap;border-bottom:1px solid var(--grid)}
thead th{color:var(--muted);font-weight:600;vertical-align:bottom}
tbody th{font-weight:400}
tfoot th,tfoot td{font-weight:600;border-top:1px solid var(--muted)}
.number{text-align:right}
td.wrap,th.wrap{white-space:normal;overflow-wrap:anywhere;min-width:160px}
.entries{list-style:none;margin:8px 0 0;padding:0}
.entries>li{padding:8px 0;border-top:1px solid var(--grid)}
.entries p{margin:2px 0 0}
.state{font-weight:600;white-space:nowrap}
.state.open{color:var(--limit)}
.state.closed{color:var(--good)}
.raw{display:block;background:var(--track);border-radius:4px;padding:4px 8px;margin-top:4px;white-space:pre-wrap}
footer{color:var(--muted);font-size:13px;padding-bottom:32px}
@media (max-width:1135px){.beside{grid-template-columns:minmax(0,1fr)}}
@media (max-width:800px){.wide{display:none}.narrow{display:block;width:100%;max-width:480px}
 header,main,footer{padding-left:16px;padding-right:16px}section{padding:16px}
 .tiles{grid-template-columns:repeat(2,minmax(0,1fr))}.tiles dd{font-size:19px}h1{font-size:22px}}
@media print{body{background:none;font-size:11pt}section{border:0;padding:0 0 12px;break-inside:avoid-page}
 nav,.skip,details:not([open]){display:none}.scroll{overflow:visible}.verdict{padding-left:14px}
 .tiles{grid-template-columns:repeat(4,minmax(0,1fr))}table{font-size:7.5pt}th,td{padding-right:7px}
 .wide{display:block}.narrow{display:none}.beside{grid-template-columns:minmax(0,1fr)}
 .chart *{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
"""

SHEET = f"""
:root{{color-scheme:light dark;{_variables(LIGHT)}}}
@media (prefers-color-scheme:dark){{:root{{{_variables(DARK)}}}}}
@media print{{:root{{color-scheme:light;{_variables(LIGHT)}}}}}
{_RULES}"""
