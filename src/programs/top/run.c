#include "programs/top/run.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "programs/top/screen.h"
#include "programs/top/signals.h"

/* What other threads report. Each report wakes the loop. */
struct mailbox {
    pthread_mutex_t guard;
    int fd; /* eventfd */
    bool full;
    hf__ink ink;
    char text[sizeof((hf__top *)0)->message];
};

struct session {
    const hf__top_run *run;
    hf__top *top;
    struct mailbox mail;
    hf__signals signals;
    hf__view *view;
    hf__snapshot *seen; /* held while top shows it */
    hf__screen *screen;
    hf__frame frame;
    bool over;
};

/* ---- reports of other threads ---- */

static void wake(struct mailbox *mail)
{
    uint64_t one = 1;

    (void)!write(mail->fd, &one, sizeof one);
}

static void post(struct mailbox *mail, hf__ink ink, const char *text)
{
    pthread_mutex_lock(&mail->guard);
    mail->full = true;
    mail->ink = ink;
    hf__show(mail->text, sizeof mail->text, text, strlen(text));
    pthread_mutex_unlock(&mail->guard);
    wake(mail);
}

static void take_mail(struct mailbox *mail, hf__top *top)
{
    uint64_t count;

    (void)!read(mail->fd, &count, sizeof count);
    pthread_mutex_lock(&mail->guard);
    if (mail->full)
        hf__top_say(top, mail->ink, "%s", mail->text);
    mail->full = false;
    pthread_mutex_unlock(&mail->guard);
}

static void on_log(void *arg, hf_log_level level, const char *message)
{
    if (level >= HF_LOG_WARNING)
        post(arg, HF__INK_WARNING, message);
}

static void on_refresh(void *arg, hf__snapshot *snapshot)
{
    (void)snapshot;
    wake(arg);
}

/* ---- ending a holder ---- */

/* Belongs to the collector's thread until it is done. */
struct ending {
    struct mailbox *mail;
    hf__terminate what;
    hf__victim victim;
};

static hf_status end_holder(hf_store *store, void *arg, hf_error *err)
{
    return hf__terminate_holder(store, &((struct ending *)arg)->what, err);
}

static void on_ended(void *arg, hf_status status, const hf_error *err)
{
    struct ending *ending = arg;
    hf__buf text = {0};

    if (status == HF_OK)
        hf__buf_printf(&text, "ended: %s, which held %s", ending->victim.who, ending->victim.title);
    else
        hf__buf_printf(&text, "not ended: %s", err->message);
    post(ending->mail, status == HF_OK ? HF__INK_GOOD : HF__INK_PROBLEM,
         text.broken ? "out of memory" : text.data);
    hf__buf_free(&text);
    free(ending);
}

static void ask_to_end(struct session *session)
{
    const hf__victim *victim = &session->top->victims[session->top->victim];
    struct ending *ending = calloc(1, sizeof *ending);
    hf_error err;

    if (ending == NULL) {
        hf__top_say(session->top, HF__INK_PROBLEM, "out of memory");
        return;
    }
    *ending = (struct ending){
        .mail = &session->mail,
        .victim = *victim,
        .what = {.key = victim->key,
                 .space = victim->space,
                 .party = victim->party,
                 .token = victim->token,
                 .by = session->run->by},
    };
    if (hf__view_ask(session->view, end_holder, on_ended, ending, &err) == HF_OK)
        return;
    hf__top_say(session->top, HF__INK_PROBLEM, "not ended: %s", err.message);
    free(ending);
}

/* ---- keys and signals ---- */

static void copy(struct session *session)
{
    hf__buf text = {0};
    char shown[256];
    const char *copied = hf__top_copied(session->top, &text);
    bool sent = hf__screen_copy(session->screen, copied);

    hf__show(shown, sizeof shown, copied, strlen(copied));
    hf__top_say(session->top, sent ? HF__INK_GOOD : HF__INK_WARNING,
                sent ? "copied: %s" : "this terminal has no clipboard: %s", shown);
    hf__buf_free(&text);
}

static void take_snapshot(struct session *session)
{
    hf__snapshot *latest = hf__view_latest(session->view);

    hf__top_see(session->top, latest);
    hf__snapshot_release(session->seen);
    session->seen = latest;
}

static void pause_or_go_on(struct session *session)
{
    hf__view_pause(session->view, session->top->paused);
    if (!session->top->paused)
        take_snapshot(session);
}

static void do_act(struct session *session, hf__act act)
{
    switch (act) {
    case HF__ACT_NONE: break;
    case HF__ACT_QUIT: session->over = true; break;
    case HF__ACT_PAUSE: pause_or_go_on(session); break;
    case HF__ACT_REFRESH: hf__view_set_refresh(session->view, session->top->refresh_ms); break;
    case HF__ACT_COPY: copy(session); break;
    case HF__ACT_END: ask_to_end(session); break;
    case HF__ACT_REDRAW: hf__screen_forget(session->screen); break;
    }
}

static void take_keys(struct session *session)
{
    int32_t key;

    while (!session->over && hf__screen_key(session->screen, &key))
        do_act(session, hf__top_press(session->top, key));
}

static void take_signals(struct session *session)
{
    int number;

    while ((number = hf__signals_next(&session->signals)) != 0) {
        if (number == SIGWINCH) {
            hf__screen_resized(session->screen);
        } else if (number == SIGCONT) {
            hf__screen_resume(session->screen);
        } else if (number == SIGTSTP) {
            hf__screen_suspend(session->screen);
            hf__signals_stop_here();
            hf__screen_resume(session->screen);
        } else {
            session->over = true;
        }
    }
}

/* ---- the loop ---- */

static void draw(struct session *session)
{
    size_t width, height;

    session->top->now_ms = hf__wall_ms();
    hf__screen_size(session->screen, &width, &height);
    hf__top_draw(session->top, width, height, &session->frame);
    hf__screen_show(session->screen, &session->frame);
}

enum { KEYS, SIGNALS, MAIL, INPUTS, TICK_MS = 1000 };

/* Wakes up at least once a second, because ages are shown. */
static void await_something(struct session *session)
{
    struct pollfd inputs[INPUTS] = {
        [KEYS] = {.fd = STDIN_FILENO, .events = POLLIN},
        [SIGNALS] = {.fd = session->signals.fd, .events = POLLIN},
        [MAIL] = {.fd = session->mail.fd, .events = POLLIN},
    };

    if (poll(inputs, INPUTS, TICK_MS) < 0 && errno != EINTR) {
        session->over = true;
        return;
    }
    take_signals(session);
    if (session->over)
        return;
    take_keys(session);
    if ((inputs[KEYS].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0)
        session->over = true; /* the terminal is gone */
    if ((inputs[MAIL].revents & POLLIN) != 0) {
        take_mail(&session->mail, session->top);
        if (!session->top->paused)
            take_snapshot(session);
    }
}

static hf_status look(struct session *session, hf_error *err)
{
    hf_status status = hf__screen_open(session->run->colour, &session->screen, err);

    if (status != HF_OK)
        return status;
    hf__signals_work(&session->signals);
    take_snapshot(session);
    while (!session->over) {
        draw(session);
        await_something(session);
    }
    return HF_OK;
}

static hf_status open_view(struct session *session, hf_error *err)
{
    hf__view_options options = session->run->view;

    options.store.log = on_log;
    options.store.log_arg = &session->mail;
    options.refresh_ms = session->top->refresh_ms;
    hf_status status = hf__view_open(&options, &session->view, err);
    if (status == HF_OK)
        hf__view_listen(session->view, on_refresh, &session->mail);
    return status;
}

hf_status hf__top_run_on(const hf__top_run *run, hf__top *top, hf_error *err)
{
    struct session session = {.run = run, .top = top};
    hf_status status;

    session.mail.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (session.mail.fd < 0)
        return hf__fail_errno(err, HF_SYSTEM, errno, "cannot make an event descriptor");
    pthread_mutex_init(&session.mail.guard, NULL);
    status = hf__signals_start(&session.signals, err);
    if (status == HF_OK) {
        status = open_view(&session, err);
        if (status == HF_OK)
            status = look(&session, err);
        hf__screen_close(session.screen);
        hf__view_close(session.view); /* may still post */
        hf__signals_end(&session.signals);
    }
    hf__top_see(top, NULL);
    hf__snapshot_release(session.seen);
    hf__frame_free(&session.frame);
    pthread_mutex_destroy(&session.mail.guard);
    close(session.mail.fd);
    return status;
}
