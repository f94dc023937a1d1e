// A program that a test makes up, with one of everything that a table may have.
#pragma once

#include <array>
#include <string>

#include "config/option.h"

namespace lockd::config {

inline constexpr auto kSampleSettings = in_group(
    "Settings", std::to_array<Option>({
                    text("peer", "HOST",
                         {.alias = "peers", .letter = 'p', .variables = {"PEER"}, .repeats = true},
                         "Whom to ask."),
                    whole("size", 1, 100, {.variables = {"SIZE", "OLD_SIZE"}, .by_default = "5"},
                          "How much; at most."),
                    seconds("pause", Nanoseconds(1), {.variables = {"PAUSE"}, .by_default = "1"},
                            "How long to pause."),
                    boolean("loud", {.variables = {"LOUD"}}, "Say more."),
                    text("word", "WORD", {.variables = {"WORD"}, .choices = "a b c"}, "Which."),
                    text("secret", "TEXT", {.variables = {"SECRET"}, .secret = true}, "Hush."),
                    file("config", {.variables = {"CONFIG"}}, "A file."),
                }));
inline constexpr auto kSampleActions = std::to_array<Option>({kHelp, kVersion});
inline constexpr auto kSampleDo = std::to_array<Option>({
    boolean("now", {.letter = 'n'}, "At once."),
    seconds("wait", Nanoseconds(0), {.letter = 'w'}, "How long to wait."),
    text("line", "LINE", {.letter = 'c'}, "A line for the shell."),
    boolean("size", {}, "Not the other --size."),
});
inline constexpr auto kSampleRun = std::to_array<Operand>({
    {.name = "KEY", .help = "A key."},
    {.name = "COMMAND", .count = Operand::Count::command, .help = "What.", .instead = "line"},
});
inline constexpr auto kSampleShow = std::to_array<Operand>({
    {.name = "KIND", .help = "Which kind.", .choices = "one two"},
    {.name = "MORE", .count = Operand::Count::any, .help = "More."},
});
inline constexpr auto kSampleBelow = std::to_array<Command>({
    {.name = "show", .summary = "Show it", .description = "Shows it.", .operands = kSampleShow},
});
inline constexpr auto kSampleCommands = std::to_array<Command>({
    {.name = "do",
     .summary = "Do it",
     .description = "Does it.",
     .operands = kSampleRun,
     .options = kSampleDo,
     .shared = kSampleSettings},
    {.name = "log", .summary = "Look at it", .description = "Looks.", .commands = kSampleBelow},
});
inline constexpr Command kSample{.name = "sam-ple",
                                 .summary = "a sample",
                                 .description = "A program.",
                                 .options = kSampleActions,
                                 .shared = kSampleSettings,
                                 .commands = kSampleCommands};

}  // namespace lockd::config
