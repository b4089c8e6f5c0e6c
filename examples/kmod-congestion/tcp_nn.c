/* TCP congestion control by a small recurrent network, asked once per round trip. Each connection has an instance of the
 * model of its own, so that the network remembers what the path did before.
 *
 * There is no floating point here: numbers go in and out with 16 fractional bits. Where the model cannot run just now, as
 * a model of floats in an interrupt, the window stays as it is until the next round trip. */
#include <linux/err.h>
#include <linux/module.h>
#include <linux/version.h>
#include <net/tcp.h>

#include "policy_kmod.h"

#define ONE      65536
#define NEAR     1000 /* microseconds: on shorter paths delays are those of schedulers, and no queue */
#define LEAST    2u
#define WIDEST   32768u /* packets; wider windows were not in the training */
#define FEATURES POLICY_KMOD_INPUT0_COUNT

static_assert(FEATURES == 4, "queue, loss, rate and window");

struct nn_flow {
    struct policy_instance *policy;
    u32 round_end; /* the round trip is over when this much has been delivered */
    u32 delivered; /* when it began */
    u32 lost;
    u32 least_rtt; /* microseconds */
};

static_assert(sizeof(struct nn_flow) <= ICSK_CA_PRIV_SIZE, "the kernel keeps no more for a connection");

/* Read them under /sys/module/tcp_nn/parameters. */
static unsigned long decisions, raised, lowered, refused;
module_param(decisions, ulong, 0444);
MODULE_PARM_DESC(decisions, "how often the network was asked");
module_param(raised, ulong, 0444);
module_param(lowered, ulong, 0444);
module_param(refused, ulong, 0444);
MODULE_PARM_DESC(refused, "how often it could not run");

static s32 ratio(u64 part, u64 whole)
{
    return whole == 0 ? 0 : (s32)min_t(u64, div64_u64(part * ONE, whole), 64 * ONE);
}

/* log2 by its highest bit and a straight line up to the next. */
static s32 log2_of(u32 value)
{
    u32 top = value > 0 ? (u32)fls(value) - 1u : 0u;

    return (s32)((top << 16) + (u32)ratio(value - (1u << top), 1ull << top));
}

/* value * 2^change for a change of -1 to 1, by straight lines. */
static u32 changed_by(u32 value, s32 change)
{
    s64 by = change > 0 ? (s64)value * change : (s64)value * change / 2;

    return (u32)(value + (s32)div_s64(by, ONE));
}

static void observe(const struct tcp_sock *tp, const struct nn_flow *flow, s32 features[FEATURES])
{
    u32 rtt = tp->srtt_us >> 3;
    u32 least = max_t(u32, flow->least_rtt, NEAR);
    u32 delivered = tp->delivered - flow->delivered;
    u32 lost = tp->lost - flow->lost;
    u32 window = tcp_snd_cwnd(tp);

    features[0] = rtt > least ? ratio(rtt - least, least) : 0;
    features[1] = ratio(lost, (u64)lost + delivered);
    features[2] = min(ratio(delivered, window), ONE);
    features[3] = log2_of(window) / 16;
}

/* The window after a change; where one packet is more than the change, it is a change all the same. */
static u32 window_after(const struct tcp_sock *tp, u32 window, s32 change)
{
    u32 wanted = changed_by(window, change);

    if (wanted == window && abs(change) > ONE / 64) {
        wanted = change > 0 ? window + 1 : window - 1;
    }
    return clamp(wanted, LEAST, min(tp->snd_cwnd_clamp, WIDEST));
}

static void decide(struct sock *sk, struct nn_flow *flow)
{
    struct tcp_sock *tp = tcp_sk(sk);
    s32 features[FEATURES];
    u32 window = tcp_snd_cwnd(tp);
    s32 change = 0;
    u32 wanted;

    observe(tp, flow, features);
    policy_write_q16(flow->policy, 0, features, FEATURES);
    if (policy_run(flow->policy, GFP_ATOMIC) != 0) {
        refused++;
        return;
    }
    policy_read_q16(flow->policy, 0, &change, 1);
    decisions++;
    if (change > 0 && !tcp_is_cwnd_limited(sk)) {
        return; /* what is not used need not grow */
    }
    wanted = window_after(tp, window, change);
    raised += wanted > window;
    lowered += wanted < window;
    tcp_snd_cwnd_set(tp, wanted);
    tp->snd_ssthresh = wanted;
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
static void nn_control(struct sock *sk, u32 ack, int flag, const struct rate_sample *sample)
#else
static void nn_control(struct sock *sk, const struct rate_sample *sample)
#endif
{
    struct tcp_sock *tp = tcp_sk(sk);
    struct nn_flow *flow = inet_csk_ca(sk);

    if (sample->rtt_us > 0 && (u32)sample->rtt_us < flow->least_rtt) {
        flow->least_rtt = (u32)sample->rtt_us;
    }
    if (flow->policy == NULL || sample->delivered <= 0 || before(sample->prior_delivered, flow->round_end)) {
        return;
    }
    decide(sk, flow);
    flow->round_end = tp->delivered;
    flow->delivered = tp->delivered;
    flow->lost = tp->lost;
}

static void nn_start(struct sock *sk)
{
    const struct tcp_sock *tp = tcp_sk(sk);
    struct nn_flow *flow = inet_csk_ca(sk);
    struct policy_instance *policy = policy_create(GFP_ATOMIC | __GFP_NOWARN);

    *flow = (struct nn_flow){
        .policy = IS_ERR(policy) ? NULL : policy, /* without memory the window stays as it is */
        .round_end = tp->delivered,
        .delivered = tp->delivered,
        .lost = tp->lost,
        .least_rtt = U32_MAX,
    };
}

static void nn_end(struct sock *sk)
{
    struct nn_flow *flow = inet_csk_ca(sk);

    policy_destroy(flow->policy);
    flow->policy = NULL;
}

static u32 nn_threshold(struct sock *sk)
{
    return max(tcp_snd_cwnd(tcp_sk(sk)) / 2, 2u);
}

static u32 nn_undo(struct sock *sk)
{
    return tcp_snd_cwnd(tcp_sk(sk));
}

static struct tcp_congestion_ops tcp_nn = {
    .name = "nn",
    .owner = THIS_MODULE,
    .init = nn_start,
    .release = nn_end,
    .ssthresh = nn_threshold,
    .undo_cwnd = nn_undo,
    .cong_control = nn_control,
};

static int __init tcp_nn_init(void)
{
    return tcp_register_congestion_control(&tcp_nn);
}

static void __exit tcp_nn_exit(void)
{
    tcp_unregister_congestion_control(&tcp_nn);
}

module_init(tcp_nn_init);
module_exit(tcp_nn_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("TCP congestion control by a neural network");
MODULE_SOFTDEP("pre: nn_policy");
