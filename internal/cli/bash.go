package cli

import "strings"

// BashWords returns a bash function that reads the words of the command line. The function in
// cobra's script needs the bash-completion package. Readline also separates words at = and :, which
// this function joins again.
func BashWords(program string) string {
	return strings.ReplaceAll(bashWords, "PROGRAM", program)
}

const bashWords = `
__PROGRAM_init_completion()
{
    local i word blanks last="" line=${COMP_LINE:0:COMP_POINT}
    COMPREPLY=()
    words=()
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        blanks=${line%%[![:blank:]]*}
        line=${line#"$blanks"}
        if [[ $line != "$word"* ]]; then
            word=$line # the cursor is within the word
        fi
        line=${line#"$word"}
        if ((i > 0)) && [[ -z $blanks && ( $word =~ ^[=:]+$ || $last =~ ^[=:]+$ || -z $word ) ]]; then
            words[${#words[@]}-1]+=$word
        else
            words+=("$word")
        fi
        last=$word
    done
    cword=$((${#words[@]} - 1))
    cur=${words[cword]}
    prev=""
    if ((cword > 0)); then
        prev=${words[cword-1]}
    fi
}
`
