package policy

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp/syntax"
	"strings"
	"time"
	"unicode"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/vm"

	"github.com/refreshd/refreshd/model/document"
)

// Expression is a formula over a RetryInput. It returns a duration as text ("10m"), seconds as a number, or false for no retry. It has no loops, no
// clock and no side effects.
type Expression struct{ formula }

type formula struct {
	Text     string
	program  *vm.Program
	patterns int // instructions of the patterns of matches
}

// CompiledSize estimates the memory of the compiled policy in bytes, beyond its text: 160 for a byte of an expression and 48 for an instruction of
// a pattern, as measured.
func (p *Policy) CompiledSize() (size int) {
	if expression, ok := p.Retries.(*Expression); ok {
		size = 160*len(expression.Text) + 48*expression.patterns
	}
	if p.AlignBy != nil {
		size += 160*len(p.AlignBy.Text) + 48*p.AlignBy.patterns
	}
	return size
}

type retryEnv struct {
	K            int     `expr:"k"`
	Reason       string  `expr:"reason"`
	ErrorType    string  `expr:"error_type"`
	QueueDepth   int     `expr:"queue_depth"`
	SinceSuccess float64 `expr:"seconds_since_success"`
}

// Bounds of an expression, which is evaluated at each failure of each model that uses it.
const (
	maxExpression      = 1000 // bytes
	maxExpressionNodes = 200
)

// expressionFunctions are the allowed functions: none loops, and none asks the clock.
var expressionFunctions = []string{"abs", "ceil", "float", "floor", "int", "len", "lower", "max", "min", "round", "string", "trim", "upper"}

func parseExpression(text string) (*Expression, error) {
	compiled, err := compile(text, text, "k, reason, error_type, queue_depth and seconds_since_success", expr.Env(retryEnv{}))
	return &Expression{compiled}, err
}

func compile(text, meant, variables string, environment ...expr.Option) (formula, error) {
	if len(text) > maxExpression {
		return formula{}, document.Refuse("expr", fmt.Sprintf("at most %d bytes", maxExpression), fmt.Sprint(len(text)))
	}
	hidden := func(r rune) bool { // it would harm a terminal or a document that shows it
		return unicode.IsControl(r) && !strings.ContainsRune("\t\r\n", r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
	}
	if strings.ContainsFunc(text, hidden) {
		return formula{}, document.Refuse("expr", `an expression without control characters; "\u001b" stands for one`, document.Found(text))
	}
	bounds := &expressionBounds{}
	options := []expr.Option{expr.DisableAllBuiltins(), expr.MaxNodes(maxExpressionNodes), expr.Patch(bounds)}
	for _, name := range expressionFunctions {
		options = append(options, expr.EnableBuiltin(name))
	}
	program, err := expr.Compile(meant, append(options, environment...)...)
	if err == nil {
		err = bounds.err
	}
	if err != nil {
		reason, _, _ := strings.Cut(err.Error(), "\n")
		return formula{}, document.Refuse("expr", "an expression over "+variables, document.Found(text)+" ("+document.Shorten(reason, document.MaxText)+")")
	}
	return formula{strings.Clone(text), program, bounds.patterns}, nil
}

// maxPatterns bounds all patterns of an expression together, in instructions of their programs: a short one can have a long program.
const maxPatterns = 300

// expressionBounds refuses constructs by which a short expression could do much work.
type expressionBounds struct {
	err      error
	patterns int // instructions so far
}

// Visit is called for each node of an expression.
func (b *expressionBounds) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.BinaryNode:
		pattern, constant := n.Right.(*ast.StringNode)
		switch {
		case n.Operator == "..":
			b.refuse("ranges are not allowed")
		case n.Operator != "matches":
		case !constant:
			b.refuse("the pattern of matches must be a text in quotes")
		case composes(n.Left):
			b.refuse("matches must not look at what is put together")
		default:
			if parsed, err := syntax.Parse(pattern.Value, syntax.Perl); err == nil {
				if program, err := syntax.Compile(parsed.Simplify()); err == nil {
					b.patterns += len(program.Inst)
				}
			}
			if b.patterns > maxPatterns {
				b.refuse("the patterns of matches must be simpler")
			}
		}
	case *ast.CallNode: // of times: one may take the output of another one for a format, and each could be twice as long
		b.refuse("methods are not allowed")
	case *ast.PredicateNode: // whichever argument of a function it is
		b.refuse("loops are not allowed")
	case *ast.VariableDeclaratorNode:
		if !isScalar(n.Value) && composes(n.Value) {
			b.refuse("a let must not name what is put together from others")
		}
	}
}

func (b *expressionBounds) refuse(reason string) {
	if b.err == nil {
		b.err = errors.New(reason)
	}
}

func isScalar(node ast.Node) bool {
	switch node.Type().Kind() {
	case reflect.Bool, reflect.Int, reflect.Int64, reflect.Float64:
		return true
	default:
		return node.Type() == reflect.TypeFor[time.Time]()
	}
}

// composes reports whether a value may be longer than its parts. Under a name it could double again and again: 40 names make a terabyte.
func composes(value ast.Node) bool {
	named := ast.Find(value, func(node ast.Node) bool { _, name := node.(*ast.IdentifierNode); return name })
	grows := ast.Find(value, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.BinaryNode:
			return n.Operator == "+" && !isScalar(n)
		case *ast.IdentifierNode:
			return n.Value == "$env"
		case *ast.ArrayNode, *ast.MapNode:
			return true
		default:
			return false
		}
	})
	return named != nil && grows != nil
}

// Delay evaluates the expression. Its error is a policy_error.
func (e *Expression) Delay(o RetryInput) (time.Duration, bool, error) {
	result, err := expr.Run(e.program, retryEnv{o.K, o.Reason, o.ErrorType, o.QueueDepth, o.SinceSuccess.Seconds()})
	if err != nil {
		reason, _, _ := strings.Cut(err.Error(), "\n")
		return 0, false, errors.New(reason)
	}
	switch value := result.(type) {
	case bool:
		if value {
			return 0, false, errors.New("expected a duration or false, found true")
		}
		return 0, false, nil
	case string:
		delay, err := parseDelay("expr", value)
		return delay, err == nil, err
	case int:
		result = float64(value)
	}
	seconds, ok := result.(float64)
	if !ok {
		return 0, false, fmt.Errorf("expected a duration or false, found %T", result)
	}
	if !(seconds >= 0 && seconds <= document.MaxDuration.Seconds()) { // also when it is no number
		return 0, false, fmt.Errorf("expected 0 seconds to ten years, found %g", seconds)
	}
	return time.Duration(math.Round(seconds*1000)) * time.Millisecond, true, nil
}

// Count is Unlimited: an expression ends by returning false.
func (e *Expression) Count() int { return Unlimited }

func (e *Expression) document() any { return map[string]string{"expr": e.Text} }

func readExpression(fields map[string]any) (string, error) {
	doc := document.Read(fields, "expr")
	return doc.Text("expr"), doc.Err()
}

// AsksQueueDepth reports whether a decision needs to know the length of the input list.
func (p *Policy) AsksQueueDepth() bool {
	expression, ok := p.Retries.(*Expression)
	return ok && strings.Contains(expression.Text, "queue_depth")
}
