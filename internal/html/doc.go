// Package html writes a log as one HTML page that needs no other file: a summary, the text of the
// log, and its backtraces, which fold.
//
// # The page
//
// A page has one of two forms. A small page, of at most 16 MiB, has the whole log as plain HTML. A
// large page has the first lines (2,000, or 1 MiB) as plain HTML, and the others in chunks. Parts
// that only a large page has are marked (large).
//
//	<body>
//	<header><h1>TITLE</h1><p><a href="#index">Summary</a></p></header>
//	<nav id="index" aria-labelledby="…"><h2>Summary</h2>             of a large page, after all others
//	<p>Crashes and errors: …</p><ul><li>2 SIGSEGV · <a href="#c1">1</a>: FUNCTION FILE:LINE</li></ul>
//	<details class="t" open><summary>Backtraces: …</summary><table>…</table></details></nav>
//	<main>
//	<h2>NAME</h2>                                        before each input, if there are several
//	<pre>TEXT</pre>                                      up to 200 lines
//	<div class="g">                                      the backtraces of a report, or one
//	<div>                                                each with the text before it, except the first
//	<details class="b" id="c1" open>                     a new one; "b o" if not a crash or error
//	<summary>Backtrace 1, ROLE: FUNCTION FILE:LINE</summary>
//	<details class="f" open><summary><code>LINE</code></summary>     a frame
//	<pre class="s">30 | SOURCE
//	<mark>31 | SOURCE</mark>
//	</pre><p>…</p></details>
//	<details class="f u"><summary>…                      a frame without a name
//	<details class="y"><summary>3 frames of libc.so.6</summary><pre>TEXT</pre></details>
//	</details></div></div>
//	<details class="r"><summary>Backtrace 1 again</summary><pre>TEXT</pre><p><a href="#c1">…</a></p></details>
//	<details class="y"><summary>…</summary><pre>TEXT</pre></details>  other text that folds
//	<pre>…<button type="button" popovertarget="h7">0x6ee1</button>…</pre>
//	<div popover id="h7">…</div>                         after the block of its value
//	</main>
//	<section id="rest">                                  (large)
//	<h2>…</h2>
//	<p id="blocked">…needs scripts…</p>                  the script removes it
//	<div id="view"></div>                                the script shows the chunks here
//	<script type="text/x-gz" data-first="2001" data-lines="9876">BASE64</script>
//	<details class="b" id="c2" open>…</details>          a backtrace that is new in the chunks
//	</section>
//	<script>…</script>
//	</body>
//
// A link to #L123 leads to line 123, counted from 1 at the beginning of the page; the script finds
// it. A <code> of several lines has a <br> after each line end, for browsers without the style,
// which hides it. A <summary> has no link and no button. Nothing has an attribute style or on…; the
// only ids are the ones above.
//
// # The text
//
// The text of the log is in the elements <pre> without a class and <code> within <main>, and then
// in the chunks: their textContent, in order. It is what a terminal gets from --color=never:
// control characters are visible as \x1b, line ends are "\n". Everything else on the page, such as
// source text, links and the words of a <summary>, is in other elements. The text of a backtrace
// that is new in the chunks appears a second time, in a <section>. That is not part of the text of
// the log.
//
// # Colours
//
// A colour is a <span> with one class or several. c0 to c7 are the foreground colours black, red,
// green, yellow, blue, magenta, cyan and white. c8 to c15 are their bright variants, and g0 to g15
// the same colours for the background. a0 to a7 are bold, faint, italic, underline, blinking,
// inverse, concealed and struck. Other colours become the nearest of the 16. A colour ends with its
// line. In the line of a frame, class d marks text that few readers need: the address and the place
// in the module.
//
// # Chunks
//
// (large) A chunk is a script element with the type text/x-gz. Its content is base64 of gzip of
// UTF-8 text: lines of the log, each with "\n", about 1 MiB. The attribute data-first is the number
// of its first line, counted from 1 at the beginning of the page. data-lines is the number of its
// lines. If the text does not end with "\n", its last line continues in the next chunk.
//
// The text of the log has no control character but TAB and "\n", so others are marks:
//
//	\x1b CLASSES \x1b TEXT \x1b \x1b    TEXT is coloured: CLASSES as in class="c1 a0". Split a line
//	                                    at \x1b: the parts are text, classes, text, classes, …;
//	                                    classes are empty after a colour, and hold for the text
//	                                    that follows them. Each line begins without a colour.
//	\x01 at the beginning of a line     the line is a frame with a name, of the program
//	\x02                                the line is a frame of the system or its libraries
//	\x03                                the line is a frame without a name
//	\x04 N \x04                         before these: a backtrace begins with the line. It is the
//	                                    one with id="cN", or N is empty if it is not on the page
//	\x05 NAME \x05                     before all others: the line is the first one of input NAME,
//	                                    which is not text of the log. It has no line of its own, so
//	                                    that lines have the same numbers in the plain part
package html
